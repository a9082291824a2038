"""Code of an older form is rewritten, and code of this release is not."""

import pytest

from scripts.changes import CHECKOUT, list_tracked, read_texts
from scripts.upgrade.codemods import CODEMODS, rewrite

MODELS = "from shared.projections.read_models import ReadModel\n"
CONSUMER = "from shared.inbox.consumer import Reactions, merge_reactions\n"
OWN = "from my_svc.models import ReadModel, merge_reactions\n"


@pytest.mark.parametrize(
    ("imports", "older", "newer"),
    [
        (MODELS, 'X = ReadModel(table="a", topic=T)\n', 'X = ReadModel(name="a", topic=T)\n'),
        (
            MODELS,
            'X = (\n    ReadModel(  # often\n        topic=T, table="a"\n    ),\n)\n',
            'X = (\n    ReadModel(  # often\n        topic=T, name="a"\n    ),\n)\n',
        ),
        (
            CONSUMER,
            "domain: Reactions = made()\nX = merge_reactions(domain, MODELS)\n",
            "domain: Reactions = made()\nX = merge_reactions((domain,), MODELS)\n",
        ),
        (
            CONSUMER,
            "def f(domain: Reactions):\n    return merge_reactions(domain, ())\n",
            "def f(domain: Reactions):\n    return merge_reactions((domain,), ())\n",
        ),
        (
            CONSUMER,
            "a: Reactions = {}\nX = merge_reactions(read_models=(), domain=a)\n",
            "a: Reactions = {}\nX = merge_reactions(read_models=(), domain=(a,))\n",
        ),
        (
            CONSUMER,
            "a: Reactions = {}\nf = lambda a: a\nX = merge_reactions(a, ())\n",
            "a: Reactions = {}\nf = lambda a: a\nX = merge_reactions((a,), ())\n",
        ),
        (CONSUMER, "X = merge_reactions({T: {}}, ())\n", "X = merge_reactions(({T: {}},), ())\n"),
    ],
)
def test_an_older_form_is_rewritten_once(imports: str, older: str, newer: str) -> None:
    assert rewrite(imports + older, CODEMODS) == imports + newer
    assert rewrite(imports + newer, CODEMODS) == imports + newer


@pytest.mark.parametrize(
    "text",
    [
        f'{OWN}X = ReadModel(table="a")\nr = merge_reactions({{}}, ())\n',
        f'{MODELS.strip()} as Model\nX = ReadModel(table="a")\n',
        f'def f():\n    {MODELS}    return ReadModel(table="a")\n',
        f'{MODELS}X = create(table="a")\ny = X.table\n',
        f'{MODELS}X = ReadModel(table="a", name="b")\n',
        f"{CONSUMER}domain = (a, b)\nr = merge_reactions(domain, ())\n",
        f"{CONSUMER}a: Reactions = {{}}\na = (a,)\nr = merge_reactions(a, ())\n",
        f"{CONSUMER}def f(a: Reactions): ...\ndef g(a):\n    merge_reactions(a, ())\n",
        f"{CONSUMER}a: Reactions = {{}}\nfor a in b:\n    merge_reactions(a, ())\n",
        f"{CONSUMER}a: Reactions = {{}}\nwith b as a:\n    merge_reactions(a, ())\n",
        f"{CONSUMER}a: Reactions = {{}}\nf = lambda a: merge_reactions(a, ())\n",
        f"{CONSUMER}class C:\n    a: Reactions = {{}}\nr = merge_reactions(a, ())\n",
        f"{CONSUMER}def f():\n    a: Reactions = {{}}\ndef g():\n    merge_reactions(a, ())\n",
        f"{CONSUMER}a: Reactions = {{}}\ndef g(a: T):\n    merge_reactions(a, ())\n",
        f"{CONSUMER}r = merge_reactions([{{}}, deciding()], ())\nall = merge_reactions()\n",
        f"{CONSUMER}o: Reactions = {{}}\nr = merge_reactions(**o) or merge_reactions(*o)\n",
        f"{CONSUMER}r = merge_reactions(made(), ())  # of a type that is not seen here\n",
    ],
)
def test_other_code_stays(text: str) -> None:
    assert rewrite(text, CODEMODS) == text


def test_no_code_here_is_of_an_older_form() -> None:
    modules = [file for file in list_tracked(CHECKOUT) if file.endswith(".py")]
    texts = read_texts(CHECKOUT, modules)

    changed = [file for file, text in texts.items() if rewrite(text, CODEMODS) != text]

    assert changed == []
