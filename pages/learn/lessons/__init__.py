"""The lessons in their order. A new lesson is a module here, its name in LESSONS, and its texts in the catalogue."""

from pages.learn.lesson import Lesson
from pages.learn.lessons.decoding import DECODING
from pages.learn.lessons.explanation import EXPLANATION
from pages.learn.lessons.learning import LEARNING
from pages.learn.lessons.many_heads import MANY_HEADS
from pages.learn.lessons.masks import MASKS
from pages.learn.lessons.one_head import ONE_HEAD
from pages.learn.lessons.positions import POSITIONS
from pages.learn.lessons.query_key_value import QUERY_KEY_VALUE
from pages.learn.lessons.the_layer import THE_LAYER
from pages.learn.lessons.why_attention import WHY_ATTENTION

LESSONS: tuple[Lesson, ...] = (
    WHY_ATTENTION,
    QUERY_KEY_VALUE,
    ONE_HEAD,
    MANY_HEADS,
    POSITIONS,
    MASKS,
    THE_LAYER,
    LEARNING,
    DECODING,
    EXPLANATION,
)
