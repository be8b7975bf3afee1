"""The languages that headers, keys and file endings name: "fr", "fra", "fr_FR", "fra_Latn", "French", "français"."""

import re

_TABLE = """
af afr Afrikaans | ar ara Arabic العربية | az aze Azerbaijani | be bel Belarusian | bg bul Bulgarian български
bn ben Bengali বাংলা | bs bos Bosnian | ca cat Catalan català | ceb Cebuano | cs ces cze Czech čeština
cy cym wel Welsh Cymraeg | da dan Danish dansk | de deu ger German Deutsch | el ell gre Greek ελληνικά
en eng English | eo epo Esperanto | es spa Spanish español | et est Estonian eesti | eu eus baq Basque euskara
fa fas per pes Persian فارسی | fi fin Finnish suomi | fr fra fre French français | ga gle Irish Gaeilge
gl glg Galician galego | gu guj Gujarati | ha hau Hausa | he heb iw Hebrew עברית | hi hin Hindi हिन्दी
hr hrv Croatian hrvatski | hu hun Hungarian magyar | hy hye arm Armenian | id ind Indonesian | ig ibo Igbo
is isl ice Icelandic íslenska | it ita Italian italiano | ja jpn Japanese 日本語 | ka kat geo Georgian | kk kaz Kazakh
km khm Khmer | kn kan Kannada | ko kor Korean 한국어 | la lat Latin | lb ltz Luxembourgish | lo lao Lao
lt lit Lithuanian lietuvių | lv lav Latvian latviešu | mk mkd mac Macedonian | ml mal Malayalam | mn mon Mongolian
mr mar Marathi | ms msa may Malay | mt mlt Maltese | my mya bur Burmese | nb nob Bokmal Bokmål | ne nep Nepali
nl nld dut Dutch Nederlands | nn nno Nynorsk | no nor Norwegian norsk | pa pan Punjabi | pl pol Polish polski
ps pus Pashto | pt por Portuguese português | ro ron rum Romanian română | ru rus Russian русский | sd snd Sindhi
si sin Sinhala | sk slk slo Slovak slovenčina | sl slv Slovenian slovenščina | so som Somali
sq sqi alb Albanian shqip | sr srp Serbian српски | sv swe Swedish svenska | sw swa Swahili | ta tam Tamil
te tel Telugu | tg tgk Tajik | th tha Thai ไทย | tl tgl Tagalog | tr tur Turkish Türkçe | uk ukr Ukrainian українська
ur urd Urdu اردو | uz uzb Uzbek | vi vie Vietnamese | xh xho Xhosa | yi yid Yiddish | yo yor Yoruba
zh zho chi cmn Chinese 中文 | yue Cantonese | zu zul Zulu | kab Kabyle | tt tat Tatar | br bre Breton
gd gla Scottish-Gaelic | oc oci Occitan | toki tok Toki-Pona | ber Berber | jbo Lojban
"""
_ENTRIES = [entry.split() for entry in re.split(r"[|\n]", _TABLE) if entry.strip()]
_REGION = re.compile(r"(?<=^[a-z]{2})[-_][a-z]{2,4}$|(?<=^[a-z]{3})[-_][a-z]{2,4}$")
"""The country or the script after a code: "en-US", "en_XX", "eng_Latn", "zh-Hans"."""


def _english_name(entry: list[str]) -> str:
    return next(name for name in entry if name[0].isupper() and name.isascii()).replace("-", " ")


_LANGUAGES = {name.casefold(): _english_name(entry) for entry in _ENTRIES for name in entry}


def language(name: str) -> str:
    """Returns the English name of the language that a code or a name of it stands for; "" where it names none."""
    plain = name.strip().casefold()
    return _LANGUAGES.get(plain) or _LANGUAGES.get(_REGION.sub("", plain), "")
