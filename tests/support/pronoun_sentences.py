"""Sentences for the tests of the pronouns: written by hand with their translations, and a sample of the corpus."""

from functools import cache

from transformer.data.pronouns.corpus import N_PAIRS, pair
from transformer.text.pairs import Pair

GOLD = (
    # The classic sentence, its twin, and both with the reason first.
    (
        "The animal did not cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    ),
    (
        "The animal did not cross the street because it was too wide.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
    ),
    (
        "Because it was too tired, the animal did not cross the street.",
        "Parce qu'il était trop fatigué, l'animal n'a pas traversé la rue.",
    ),
    (
        "Because it was too wide, the animal did not cross the street.",
        "Parce qu'elle était trop large, l'animal n'a pas traversé la rue.",
    ),
    # The same reason, other genders.
    (
        "The mouse did not cross the street because it was too tired.",
        "La souris n'a pas traversé la rue parce qu'elle était trop fatiguée.",
    ),
    (
        "The mouse did not cross the bridge because it was too wide.",
        "La souris n'a pas traversé le pont parce qu'il était trop large.",
    ),
    # Every tense, affirmed and denied.
    ("The dog crossed the field.", "Le chien a traversé le champ."),
    ("The dog had crossed the field.", "Le chien avait traversé le champ."),
    ("The dog crosses the field.", "Le chien traverse le champ."),
    ("The dog will cross the field.", "Le chien traversera le champ."),
    ("The dog did not see the wall.", "Le chien n'a pas vu le mur."),
    ("The dog had not seen the wall.", "Le chien n'avait pas vu le mur."),
    ("The dog does not see the wall.", "Le chien ne voit pas le mur."),
    ("The dog will not see the wall.", "Le chien ne verra pas le mur."),
    ("The car does not avoid the truck.", "La voiture n'évite pas le camion."),
    ("The cow will not hear the tractor.", "La vache n'entendra pas le tracteur."),
    # The tense of the reason.
    (
        "The truck will not cross the bridge because it is too narrow.",
        "Le camion ne traversera pas le pont parce qu'il est trop étroit.",
    ),
    (
        "The truck had not crossed the road because it was very slippery.",
        "Le camion n'avait pas traversé la route parce qu'elle était très glissante.",
    ),
    # Elision, silent and aspirated h, demonstratives.
    ("The hedgehog sees the hippopotamus.", "Le hérisson voit l'hippopotame."),
    ("This hippopotamus avoids the ambulance.", "Cet hippopotame évite l'ambulance."),
    ("This hedgehog reached this avenue.", "Ce hérisson a atteint cette avenue."),
    # Adjectives before and after the noun, and their forms before a vowel.
    ("The old dog frightens the black goat.", "Le vieux chien effraie la chèvre noire."),
    ("The old hippopotamus follows the beautiful bird.", "Le vieil hippopotame suit le bel oiseau."),
    ("The old giraffe admires the beautiful mountain.", "La vieille girafe admire la belle montagne."),
    ("The new bus overtook the new car.", "Le nouvel autobus a dépassé la nouvelle voiture."),
    ("The white goose left the long avenue.", "L'oie blanche a quitté la longue avenue."),
    ("The young horse will catch the gray mouse.", "Le jeune cheval attrapera la souris grise."),
    ("The old hedgehog will climb the old tree.", "Le vieux hérisson escaladera le vieil arbre."),
    # Adjectives that fit both nouns: the verb settles the referent, and negation in a chase.
    (
        "The tractor frightened the cow because it was too noisy.",
        "Le tracteur a effrayé la vache parce qu'il était trop bruyant.",
    ),
    (
        "The tractor avoided the cow because it was too noisy.",
        "Le tracteur a évité la vache parce qu'elle était trop bruyante.",
    ),
    (
        "The cat caught the mouse because it was very slow.",
        "Le chat a attrapé la souris parce qu'elle était très lente.",
    ),
    (
        "The cat did not catch the mouse because it was too slow.",
        "Le chat n'a pas attrapé la souris parce qu'il était trop lent.",
    ),
    (
        "The cat did not catch the mouse because it was too fast.",
        "Le chat n'a pas attrapé la souris parce qu'elle était trop rapide.",
    ),
    (
        "Because it was too heavy, the horse had not carried the wardrobe.",
        "Parce qu'elle était trop lourde, le cheval n'avait pas transporté l'armoire.",
    ),
    (
        "The goose fears the old robot because it is strange.",
        "L'oie craint le vieux robot parce qu'il est étrange.",
    ),
    (
        "The frog left the swamp because it was too dry.",
        "La grenouille a quitté le marais parce qu'il était trop sec.",
    ),
    (
        "The hippopotamus left the river because it was too dry.",
        "L'hippopotame a quitté la rivière parce qu'elle était trop sèche.",
    ),
)


SAMPLE = 5_000


@cache
def sample() -> list[Pair]:
    """Pairs at even distances in the whole corpus."""
    return [pair(index) for index in range(0, N_PAIRS, N_PAIRS // SAMPLE)]
