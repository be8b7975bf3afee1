"""The verbs of the pronoun corpus as data: their forms, the kinds of noun they join, and whose fault each reason is.

Not here: the rule that makes one referent of two lists of reasons (corpus.py, `role_of`).
"""

from dataclasses import dataclass

from transformer.data.pronouns.lexicon import ANIMAL, EVERY_KIND, HEIGHT, LAND, MOVERS, SOLIDS, THING, VEHICLE, WAY

SUBJECT, OBJECT, EITHER = "subject", "object", "either"


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


def _reasons(subject: str, object: str, blames: str, usually: str = "too") -> Reasons:
    return Reasons(tuple(subject.split()), tuple(object.split()), blames, usually)


VERBS: tuple[Verb, ...] = (
    Verb(
        base="cross", present="crosses", past="crossed", participle="crossed",
        french_participle="traversé", french_present="traverse", french_future="traversera",
        subjects=MOVERS, objects=(WAY, LAND),
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
        subjects=MOVERS, objects=(ANIMAL, VEHICLE, WAY, LAND),
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
        subjects=MOVERS, objects=(WAY, LAND),
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
        subjects=(ANIMAL,), objects=MOVERS,
        affirmed=_reasons("nervous curious", "noisy big heavy dangerous", OBJECT, usually="very"),
        denied=_reasons("tired sick nervous", "silent small light", OBJECT),
    ),
    Verb(
        base="follow", present="follows", past="followed", participle="followed",
        french_participle="suivi", french_present="suit", french_future="suivra",
        subjects=MOVERS, objects=MOVERS,
        affirmed=_reasons("hungry curious young", "beautiful strange small slow", OBJECT, usually="very"),
        denied=_reasons("tired sick lazy shy damaged", "fast dangerous noisy dirty ugly", OBJECT),
    ),
    Verb(
        base="catch", present="catches", past="caught", participle="caught",
        french_participle="attrapé", french_present="attrape", french_future="attrapera",
        subjects=(ANIMAL,), objects=(ANIMAL,),
        affirmed=_reasons("fast strong", "slow weak old tired", EITHER, usually="very"),
        denied=_reasons("slow weak old tired", "fast strong", EITHER),
    ),
    Verb(
        base="overtake", present="overtakes", past="overtook", participle="overtaken",
        french_participle="dépassé", french_present="dépasse", french_future="dépassera",
        subjects=MOVERS, objects=MOVERS,
        affirmed=_reasons("fast strong", "tired sick lazy rusty damaged", SUBJECT, usually="very"),
        denied=_reasons("slow weak old tired sick lazy rusty damaged", "", SUBJECT),
    ),
    Verb(
        base="push", present="pushes", past="pushed", participle="pushed",
        french_participle="poussé", french_present="pousse", french_future="poussera",
        subjects=MOVERS, objects=(THING,),
        affirmed=_reasons("strong curious", "heavy big full", OBJECT, usually="very"),
        denied=_reasons("weak slow tired sick lazy", "heavy big dirty full fragile dangerous", OBJECT),
    ),
    Verb(
        base="carry", present="carries", past="carried", participle="carried",
        french_participle="transporté", french_present="transporte", french_future="transportera",
        subjects=MOVERS, objects=(THING,),
        affirmed=_reasons("strong fast", "light small beautiful fragile", OBJECT, usually="very"),
        denied=_reasons("weak slow tired sick lazy", "heavy big dirty full fragile dangerous", OBJECT),
    ),
    Verb(
        base="touch", present="touches", past="touched", participle="touched",
        french_participle="touché", french_present="touche", french_future="touchera",
        subjects=(ANIMAL,), objects=SOLIDS,
        affirmed=_reasons("curious young hungry", "beautiful strange small", OBJECT, usually="very"),
        denied=_reasons("shy nervous tired lazy slow", "dirty fragile dangerous ugly fast", OBJECT),
    ),
    Verb(
        base="block", present="blocks", past="blocked", participle="blocked",
        french_participle="bloqué", french_present="bloque", french_future="bloquera",
        subjects=MOVERS, objects=(WAY,),
        affirmed=_reasons("big old heavy slow tired lazy damaged", "narrow", SUBJECT),
        denied=_reasons("small light fast shy", "wide busy", SUBJECT),
    ),
    Verb(
        base="frighten", present="frightens", past="frightened", participle="frightened",
        french_participle="effrayé", french_present="effraie", french_future="effraiera",
        subjects=MOVERS, objects=(ANIMAL,),
        affirmed=_reasons("big noisy dangerous strange ugly fast", "nervous shy young", SUBJECT),
        denied=_reasons("small weak slow silent beautiful old", "curious lazy tired", SUBJECT),
    ),
    Verb(
        base="disturb", present="disturbs", past="disturbed", participle="disturbed",
        french_participle="dérangé", french_present="dérange", french_future="dérangera",
        subjects=MOVERS, objects=(ANIMAL,),
        affirmed=_reasons("big noisy dirty strange fast curious", "nervous shy", SUBJECT),
        denied=_reasons("small light slow silent shy", "curious lazy", SUBJECT),
    ),
    Verb(
        base="fear", present="fears", past="feared", participle="feared",
        french_participle="craint", french_present="craint", french_future="craindra",
        subjects=(ANIMAL,), objects=MOVERS,
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
        subjects=MOVERS, objects=(WAY, LAND, HEIGHT),
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
