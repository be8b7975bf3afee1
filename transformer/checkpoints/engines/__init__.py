"""Models as other libraries' folders (CTranslate2, transformers' Marian), and Marian's as ours."""
