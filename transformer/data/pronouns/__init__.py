"""The pronoun corpus: English sentences around "it", whose French must say il or elle.

corpus.py numbers and splits the sentences and states the rule of reference; grammar.py builds the phrases; lexicon.py
and verbs.py hold the words; reading.py gives the gold French of a sentence that a visitor types; glosses.py
gives the English of each French word.
"""

from transformer.data.pronouns.corpus import EXAMPLES, N_PAIRS, PronounSplits, pair, split

__all__ = ["EXAMPLES", "N_PAIRS", "PronounSplits", "pair", "split"]
