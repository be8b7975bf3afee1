"""The nouns and adjectives of the pronoun corpus as data: genders, forms, and which kinds of noun an adjective fits.

Not here: the verbs and their reasons (verbs.py), agreement (grammar.py), and how sentences are
numbered and split (corpus.py). In every kind the masculine and feminine nouns stand in couples, as many of one gender
as of the other, so that no kind gives a gender away.
"""

from dataclasses import dataclass

ANIMAL, VEHICLE, WAY, LAND, HEIGHT, THING = "animal", "vehicle", "way", "land", "height", "thing"
EVERY_KIND = (ANIMAL, VEHICLE, WAY, LAND, HEIGHT, THING)


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun with its gender; `couple` is its rank among the nouns of its kind and gender."""

    english: str
    french: str
    feminine: bool
    kind: str
    couple: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjective:
    """An adjective, what it can be said of after "it was" (`fits`) and what it may stand beside (`describes`)."""

    english: str
    masculine: str
    feminine: str
    before_vowel: str = ""
    """The masculine in front of a vowel ("vieil"); empty: like the masculine."""
    precedes: bool = False
    """True = before the French noun when attributive ("le vieux chien"), False = after it ("le chien noir")."""
    fits: tuple[str, ...] = ()
    describes: tuple[str, ...] = ()
    scale: str = ""
    """Adjectives of one scale never meet in a sentence ("the old dog ... because it was too young")."""


def _nouns(kind: str, *couples: str) -> tuple[Noun, ...]:
    """The nouns of a kind, from couples "masculine = masculin / feminine = féminin"."""
    nouns = []
    for couple, text in enumerate(couples):
        for feminine, entry in enumerate(text.split(" / ")):
            english, french = entry.split(" = ")
            nouns.append(Noun(english, french, bool(feminine), kind, couple))
    return tuple(nouns)


NOUNS: dict[str, tuple[Noun, ...]] = {
    ANIMAL: _nouns(
        ANIMAL,
        "animal = animal / cow = vache",
        "dog = chien / mouse = souris",
        "cat = chat / turtle = tortue",
        "horse = cheval / goat = chèvre",
        "bird = oiseau / goose = oie",
        "hedgehog = hérisson / giraffe = girafe",
        "hippopotamus = hippopotame / frog = grenouille",
    ),
    VEHICLE: _nouns(
        VEHICLE,
        "truck = camion / car = voiture",
        "tractor = tracteur / van = camionnette",
        "bus = autobus / ambulance = ambulance",
        "robot = robot / motorcycle = moto",
    ),
    WAY: _nouns(
        WAY,
        "bridge = pont / street = rue",
        "tunnel = tunnel / road = route",
        "path = chemin / avenue = avenue",
    ),
    LAND: _nouns(
        LAND,
        "field = champ / river = rivière",
        "stream = ruisseau / valley = vallée",
        "swamp = marais / meadow = prairie",
    ),
    HEIGHT: _nouns(
        HEIGHT,
        "wall = mur / hill = colline",
        "rock = rocher / fence = clôture",
        "tree = arbre / mountain = montagne",
    ),
    THING: _nouns(
        THING,
        "basket = panier / box = boîte",
        "bag = sac / crate = caisse",
        "barrel = tonneau / suitcase = valise",
        "aquarium = aquarium / wardrobe = armoire",
    ),
}

ASPIRATED = frozenset({"hérisson"})
"""French words whose h forbids elision ("le hérisson", but "l'hippopotame")."""

MOVERS = (ANIMAL, VEHICLE)
SOLIDS = (ANIMAL, VEHICLE, THING)


def _adjective(english: str, masculine: str, feminine: str, fits: tuple[str, ...], **rest) -> Adjective:
    return Adjective(english=english, masculine=masculine, feminine=feminine, fits=fits, **rest)


ADJECTIVES: dict[str, Adjective] = {
    adjective.english: adjective
    for adjective in (
        # Fit one kind of noun only.
        _adjective("tired", "fatigué", "fatiguée", (ANIMAL,)),
        _adjective("sick", "malade", "malade", (ANIMAL,)),
        _adjective("hungry", "affamé", "affamée", (ANIMAL,)),
        _adjective("lazy", "paresseux", "paresseuse", (ANIMAL,)),
        _adjective("shy", "timide", "timide", (ANIMAL,)),
        _adjective("nervous", "nerveux", "nerveuse", (ANIMAL,)),
        _adjective("curious", "curieux", "curieuse", (ANIMAL,)),
        _adjective("young", "jeune", "jeune", (ANIMAL,), precedes=True, describes=(ANIMAL,), scale="age"),
        _adjective("rusty", "rouillé", "rouillée", (VEHICLE,), scale="age"),
        _adjective("damaged", "endommagé", "endommagée", (VEHICLE,), scale="age"),
        _adjective("narrow", "étroit", "étroite", (WAY,), scale="size"),
        _adjective("long", "long", "longue", (WAY,), precedes=True, describes=(WAY,), scale="size"),
        _adjective("dark", "sombre", "sombre", (WAY,)),
        _adjective("busy", "fréquenté", "fréquentée", (WAY,), scale="calm"),
        _adjective("muddy", "boueux", "boueuse", (LAND,)),
        _adjective("dry", "sec", "sèche", (LAND,)),
        _adjective("wide", "large", "large", (WAY, LAND), scale="size"),
        _adjective("slippery", "glissant", "glissante", (WAY, HEIGHT)),
        _adjective("high", "haut", "haute", (HEIGHT,), scale="size"),
        _adjective("full", "plein", "pleine", (THING,)),
        _adjective("fragile", "fragile", "fragile", (THING,)),
        # Fit several kinds: where they fit both nouns, the verb settles which one is meant.
        _adjective("slow", "lent", "lente", MOVERS),
        _adjective("fast", "rapide", "rapide", MOVERS),
        _adjective("strong", "fort", "forte", MOVERS),
        _adjective("weak", "faible", "faible", MOVERS),
        _adjective("silent", "silencieux", "silencieuse", MOVERS),
        _adjective("heavy", "lourd", "lourde", SOLIDS),
        _adjective("light", "léger", "légère", SOLIDS),
        _adjective("noisy", "bruyant", "bruyante", (ANIMAL, VEHICLE, WAY), scale="calm"),
        _adjective("dirty", "sale", "sale", (ANIMAL, VEHICLE, WAY, THING)),
        _adjective("dangerous", "dangereux", "dangereuse", EVERY_KIND),
        _adjective("strange", "étrange", "étrange", EVERY_KIND),
        _adjective("ugly", "laid", "laide", EVERY_KIND, scale="looks"),
        _adjective(
            "old", "vieux", "vieille", EVERY_KIND, before_vowel="vieil",
            precedes=True, describes=(ANIMAL, VEHICLE, WAY, HEIGHT, THING), scale="age",
        ),
        _adjective(
            "beautiful", "beau", "belle", EVERY_KIND, before_vowel="bel",
            precedes=True, describes=EVERY_KIND, scale="looks",
        ),
        _adjective("big", "grand", "grande", EVERY_KIND, precedes=True, describes=EVERY_KIND, scale="size"),
        _adjective("small", "petit", "petite", EVERY_KIND, precedes=True, describes=EVERY_KIND, scale="size"),
        # Stand beside a noun only.
        _adjective(
            "new", "nouveau", "nouvelle", (), before_vowel="nouvel",
            precedes=True, describes=(VEHICLE, WAY, THING), scale="age",
        ),
        _adjective("quiet", "tranquille", "tranquille", (), describes=(WAY, LAND), scale="calm"),
        _adjective("black", "noir", "noire", (), describes=(ANIMAL, VEHICLE, THING)),
        _adjective("white", "blanc", "blanche", (), describes=(ANIMAL, VEHICLE, THING)),
        _adjective("red", "rouge", "rouge", (), describes=(VEHICLE, THING)),
        _adjective("green", "vert", "verte", (), describes=(LAND, THING)),
        _adjective("gray", "gris", "grise", (), describes=(ANIMAL, HEIGHT)),
    )
}  # fmt: skip
