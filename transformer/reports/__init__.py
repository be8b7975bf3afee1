"""Reports: a page's figures in one file or bundle, with settings, numbers, code and proofs."""
