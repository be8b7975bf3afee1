"""The words of the pronoun corpus as data: nouns, adjectives, verbs, and what each verb accepts as a reason.

Here: which kinds of noun an adjective fits, and whose fault each reason is. Not here: how words agree
(pronouns_grammar.py) and how sentences are numbered and split (pronouns.py). In every kind the masculine and feminine
nouns stand in couples, as many of one gender as of the other, so that no kind gives a gender away.
"""

from dataclasses import dataclass

ANIMAL, VEHICLE, WAY, LAND, HEIGHT, THING = "animal", "vehicle", "way", "land", "height", "thing"
EVERY_KIND = (ANIMAL, VEHICLE, WAY, LAND, HEIGHT, THING)
SUBJECT, OBJECT, EITHER = "subject", "object", "either"


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


@dataclass(frozen=True, slots=True)
class Reasons:
    """The adjectives that speak of a verb's subject, and those that speak of its object. The two never overlap."""

    subject: tuple[str, ...]
    object: tuple[str, ...]
    blames: str
    """SUBJECT, OBJECT or EITHER: where an adjective fits both nouns, only reasons of this one are used."""
    usually: str = "too"
    """The degree of the plain sentences, "too" or "very": one admires what is very beautiful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A transitive verb (French auxiliary avoir), the kinds it joins, and its reasons when affirmed and denied."""

    base: str
    present: str
    past: str
    participle: str
    french_participle: str
    french_present: str
    french_future: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    affirmed: Reasons
    denied: Reasons


def _nouns(kind: str, *couples: str) -> tuple[Noun, ...]:
    """The nouns of a kind, from couples "masculine = masculin / feminine = féminin"."""
    nouns = []
    for couple, text in enumerate(couples):
        for feminine, entry in enumerate(text.split(" / ")):
            english, french = entry.split(" = ")
            nouns.append(Noun(english, french, bool(feminine), kind, couple))
    return tuple(nouns)


def _reasons(subject: str, object: str, blames: str, usually: str = "too") -> Reasons:
    return Reasons(tuple(subject.split()), tuple(object.split()), blames, usually)


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

_MOVER = (ANIMAL, VEHICLE)
_SOLID = (ANIMAL, VEHICLE, THING)


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
        # Fit several kinds: where they fit both nouns, the verb's reasons settle which one is meant.
        _adjective("slow", "lent", "lente", _MOVER),
        _adjective("fast", "rapide", "rapide", _MOVER),
        _adjective("strong", "fort", "forte", _MOVER),
        _adjective("weak", "faible", "faible", _MOVER),
        _adjective("silent", "silencieux", "silencieuse", _MOVER),
        _adjective("heavy", "lourd", "lourde", _SOLID),
        _adjective("light", "léger", "légère", _SOLID),
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

_RACE_LOST = _reasons("slow weak old tired rusty", "fast strong", EITHER)
_RACE_WON = _reasons("fast strong", "slow weak old tired rusty", EITHER, usually="very")

VERBS: tuple[Verb, ...] = (
    Verb(
        base="cross", present="crosses", past="crossed", participle="crossed",
        french_participle="traversé", french_present="traverse", french_future="traversera",
        subjects=_MOVER, objects=(WAY, LAND),
        affirmed=_reasons(
            "tired hungry nervous curious fast",
            "wide narrow dark dry beautiful",
            OBJECT, usually="very",
        ),
        denied=_reasons(
            "tired sick hungry lazy shy nervous young slow heavy weak rusty damaged",
            "wide narrow long dark busy slippery muddy dangerous noisy dirty ugly",
            OBJECT,
        ),
    ),
    Verb(
        base="avoid", present="avoids", past="avoided", participle="avoided",
        french_participle="évité", french_present="évite", french_future="évitera",
        subjects=_MOVER, objects=(ANIMAL, VEHICLE, WAY, LAND),
        affirmed=_reasons(
            "shy tired sick weak heavy",
            "noisy dirty dangerous strange ugly big slow narrow dark busy slippery muddy",
            OBJECT,
        ),
        denied=_reasons("tired curious strong heavy", "small beautiful silent wide dry", OBJECT),
    ),
    Verb(
        base="leave", present="leaves", past="left", participle="left",
        french_participle="quitté", french_present="quitte", french_future="quittera",
        subjects=_MOVER, objects=(WAY, LAND),
        affirmed=_reasons(
            "hungry nervous sick curious",
            "noisy dirty dangerous strange ugly narrow dark busy slippery muddy dry",
            OBJECT,
        ),
        denied=_reasons("tired sick lazy shy young slow weak damaged", "beautiful wide long", OBJECT),
    ),
    Verb(
        base="see", present="sees", past="saw", participle="seen",
        french_participle="vu", french_present="voit", french_future="verra",
        subjects=(ANIMAL,), objects=EVERY_KIND,
        affirmed=_reasons("curious nervous hungry", "big strange beautiful wide high", OBJECT, usually="very"),
        denied=_reasons("tired sick lazy young", "small fast dark narrow", OBJECT),
    ),
    Verb(
        base="hear", present="hears", past="heard", participle="heard",
        french_participle="entendu", french_present="entend", french_future="entendra",
        subjects=(ANIMAL,), objects=_MOVER,
        affirmed=_reasons("nervous curious", "noisy big heavy dangerous", OBJECT, usually="very"),
        denied=_reasons("tired sick nervous", "silent small light", OBJECT),
    ),
    Verb(
        base="follow", present="follows", past="followed", participle="followed",
        french_participle="suivi", french_present="suit", french_future="suivra",
        subjects=_MOVER, objects=_MOVER,
        affirmed=_reasons("hungry curious young", "beautiful strange small slow", OBJECT, usually="very"),
        denied=_reasons("tired sick lazy shy damaged", "fast dangerous noisy dirty ugly", OBJECT),
    ),
    Verb(
        base="catch", present="catches", past="caught", participle="caught",
        french_participle="attrapé", french_present="attrape", french_future="attrapera",
        subjects=(ANIMAL,), objects=(ANIMAL,),
        affirmed=_RACE_WON,
        denied=_RACE_LOST,
    ),
    Verb(
        base="overtake", present="overtakes", past="overtook", participle="overtaken",
        french_participle="dépassé", french_present="dépasse", french_future="dépassera",
        subjects=_MOVER, objects=_MOVER,
        affirmed=_RACE_WON,
        denied=_RACE_LOST,
    ),
    Verb(
        base="push", present="pushes", past="pushed", participle="pushed",
        french_participle="poussé", french_present="pousse", french_future="poussera",
        subjects=_MOVER, objects=(THING,),
        affirmed=_reasons("strong curious", "heavy big full", OBJECT, usually="very"),
        denied=_reasons("weak slow tired sick lazy", "heavy big dirty full fragile dangerous", OBJECT),
    ),
    Verb(
        base="carry", present="carries", past="carried", participle="carried",
        french_participle="transporté", french_present="transporte", french_future="transportera",
        subjects=_MOVER, objects=(THING,),
        affirmed=_reasons("strong fast", "light small beautiful fragile", OBJECT, usually="very"),
        denied=_reasons("weak slow tired sick lazy", "heavy big dirty full fragile dangerous", OBJECT),
    ),
    Verb(
        base="touch", present="touches", past="touched", participle="touched",
        french_participle="touché", french_present="touche", french_future="touchera",
        subjects=(ANIMAL,), objects=_SOLID,
        affirmed=_reasons("curious young hungry", "beautiful strange small", OBJECT, usually="very"),
        denied=_reasons("shy nervous tired lazy slow", "dirty fragile dangerous ugly fast", OBJECT),
    ),
    Verb(
        base="block", present="blocks", past="blocked", participle="blocked",
        french_participle="bloqué", french_present="bloque", french_future="bloquera",
        subjects=_MOVER, objects=(WAY,),
        affirmed=_reasons("big old heavy slow tired lazy damaged", "narrow", SUBJECT),
        denied=_reasons("small light fast shy", "wide busy", SUBJECT),
    ),
    Verb(
        base="frighten", present="frightens", past="frightened", participle="frightened",
        french_participle="effrayé", french_present="effraie", french_future="effraiera",
        subjects=_MOVER, objects=(ANIMAL,),
        affirmed=_reasons("big noisy dangerous strange ugly fast", "nervous shy young", SUBJECT),
        denied=_reasons("small weak slow silent beautiful old", "curious lazy tired", SUBJECT),
    ),
    Verb(
        base="disturb", present="disturbs", past="disturbed", participle="disturbed",
        french_participle="dérangé", french_present="dérange", french_future="dérangera",
        subjects=_MOVER, objects=(ANIMAL,),
        affirmed=_reasons("big noisy dirty strange fast curious", "nervous shy", SUBJECT),
        denied=_reasons("small light slow silent shy", "curious lazy", SUBJECT),
    ),
    Verb(
        base="fear", present="fears", past="feared", participle="feared",
        french_participle="craint", french_present="craint", french_future="craindra",
        subjects=(ANIMAL,), objects=_MOVER,
        affirmed=_reasons("nervous shy young sick", "big noisy dangerous strange ugly fast", OBJECT),
        denied=_reasons("curious lazy", "small weak slow silent beautiful old", OBJECT),
    ),
    Verb(
        base="admire", present="admires", past="admired", participle="admired",
        french_participle="admiré", french_present="admire", french_future="admirera",
        subjects=(ANIMAL,), objects=(ANIMAL, VEHICLE, LAND, HEIGHT),
        affirmed=_reasons("shy curious young", "beautiful big strong fast strange high", OBJECT, usually="very"),
        denied=_reasons("tired sick hungry nervous lazy", "ugly dirty slow noisy old muddy", OBJECT),
    ),
    Verb(
        base="reach", present="reaches", past="reached", participle="reached",
        french_participle="atteint", french_present="atteint", french_future="atteindra",
        subjects=_MOVER, objects=(WAY, LAND, HEIGHT),
        affirmed=_reasons("fast strong hungry", "", SUBJECT, usually="very"),
        denied=_reasons("old small slow tired sick lazy weak heavy rusty damaged", "high slippery muddy", SUBJECT),
    ),
    Verb(
        base="climb", present="climbs", past="climbed", participle="climbed",
        french_participle="escaladé", french_present="escalade", french_future="escaladera",
        subjects=(ANIMAL,), objects=(HEIGHT,),
        affirmed=_reasons("curious nervous strong light hungry", "beautiful small", OBJECT, usually="very"),
        denied=_reasons("tired sick lazy weak heavy slow", "high slippery dangerous ugly", OBJECT),
    ),
)  # fmt: skip
