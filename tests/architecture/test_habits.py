"""What library code never does: print, touch the global random state, or unpickle.

Torch's own layers draw their first weights from the global state; whoever needs them to follow a seed
borrows the state with `torch.random.fork_rng`, which gives it back.
"""

import ast
from collections.abc import Iterator

import pytest
from layers import sources

# The command line speaks to people, through rich's console; it prints nothing by itself either.
NEVER = {
    "print": "log it, or return it",
    "input": "take an argument",
    "exec": "say what is meant",
    "eval": "say what is meant",
    "torch.manual_seed": "take an `rng`",
    "torch.cuda.manual_seed": "take an `rng`",
    "torch.cuda.manual_seed_all": "take an `rng`",
    "torch.random.manual_seed": "take an `rng`",
    "torch.default_generator": "take an `rng`",
    "torch.set_rng_state": "take an `rng`",
    "torch.seed": "take an `rng`",
    "numpy.random": "take an `rng`",
    "random": "take an `rng`",
    "lightning.seed_everything": "take an `rng`",
    "lightning.pytorch.seed_everything": "take an `rng`",
    "torch.load": "weights are safetensors",
    "torch.jit.load": "reading TorchScript runs its code: take a module",
    "torch.jit.freeze": "freezing runs what it folds: take a module",
    "torch.export.load": "it unpickles: take a module",
    "torch.hub": "it runs code of the network: read weights as safetensors",
    "pickle": "write JSON",
    "marshal": "write JSON",
    "shelve": "write JSON",
    "joblib": "write JSON",
    "dill": "write JSON",
    "cloudpickle": "write JSON",
}
# One reader uses torch's restricted one: of files known by their checksum.
LOADERS = ("model.efficientnet",)
EXCEPT = {(name, "torch.load") for name in LOADERS}
BORROWABLE = {"torch.manual_seed", "torch.default_generator"}
MODULES = sources()


def names_of(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `np` for `numpy`, `load` for `torch.load`."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def uses(source: str) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports or mentions."""
    tree = ast.parse(source)
    names = names_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute | ast.Name):
            first, *rest = ast.unparse(node).split(".")
            if first in names or not rest:
                yield node.lineno, ".".join([names.get(first, first), *rest])


def borrowed_lines(source: str) -> set[int]:
    """The lines that stand inside `with torch.random.fork_rng(…)`."""
    blocks = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.With)]
    forks = [b for b in blocks if any("fork_rng(" in ast.unparse(item) for item in b.items)]
    return {line for fork in forks for line in range(fork.lineno, fork.end_lineno + 1)}


def bad_habits(name: str, source: str) -> list[str]:
    """What a module does that library code never does."""
    found = {(line, used, word) for line, used in uses(source) for word in NEVER if within(used, word)}
    borrowed = borrowed_lines(source)
    return [
        f"torchsite.{name}, line {line}: {used} ({NEVER[word]})"
        for line, used, word in sorted(found)
        if (name, word) not in EXCEPT and not (word in BORROWABLE and line in borrowed)
    ]


def within(used: str, word: str) -> bool:
    """Whether a name is a forbidden one or stands inside it; `random` is the module, not a variable."""
    return used == word or used.startswith(f"{word}.")


def test_no_bad_habits():
    assert [bad for name, text in MODULES for bad in bad_habits(name, text)] == []


BAD = [
    "print('hello')",
    "def f():\n    torch = 1\n    print(torch)",
    "import torch\ntorch.manual_seed(0)",
    "import torch as t\nt.manual_seed(0)",
    "import torch\ntorch.default_generator.manual_seed(0)",
    "import torch\nwith torch.random.fork_rng():\n    pass\ntorch.manual_seed(0)",
    "import torch, numpy\nwith torch.random.fork_rng():\n    numpy.random.seed(0)",
    "from torch import manual_seed as seed",
    "import numpy as np\nnp.random.seed(0)",
    "from numpy.random import default_rng",
    "import random",
    "from random import shuffle",
    "import lightning as L\nL.seed_everything(0)",
    "import torch\nmodel = torch.load('weights.pt')",
    "from torch import load",
    "import torch\nmodel = torch.jit.load('model.pt')",
    "from torch import jit\nmodel = jit.load('model.pt')",
    "from torch.jit import load",
    "import torch\nmodel = torch.export.load('model.pt2')",
    "from torch.export import load",
    "import pickle",
    "def late():\n    from pickle import loads",
    "eval('1')",
]
GOOD = [
    "import torch\nrng = torch.Generator().manual_seed(0)",
    "import torch\nwith torch.random.fork_rng(devices=[]):\n    torch.manual_seed(0)",
    "console.print('hello')",
    "from safetensors.torch import load_file, load",
    "import torch\nx = torch.rand(3, generator=rng)",
    "model.eval()",
]


def test_bad_habits_are_found_and_good_ones_let_through():
    assert [source for source in BAD if not bad_habits("model.bad", source)] == []
    assert [source for source in GOOD if bad_habits("model.good", source)] == []


def calls_of(text, *names):
    """The calls of functions or methods of these names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
            yield node


def test_figures_show_the_names_of_users_as_they_are():
    """`$` in a name is no formula: figures are made by the one class that parses none."""
    made = [name for name, text in MODULES for _ in calls_of(text, "Figure", "figure", "subplots_mosaic")]
    assert made == [], "make figures with model.drawing.PlainFigure"
    formulas = [name for name, text in MODULES for _ in calls_of(text, "set_parse_math")]
    assert formulas == ["model.drawing"]


def test_text_is_read_and_written_in_one_encoding():
    """The locale of whoever runs a command says nothing about the encoding of our files."""
    unsaid = [
        f"torchsite.{name}, line {call.lineno}"
        for name, text in MODULES
        for call in calls_of(text, "read_text", "write_text")
        if "encoding" not in {keyword.arg for keyword in call.keywords}
    ]
    assert unsaid == []


@pytest.mark.parametrize("name", LOADERS)
def test_torch_load_is_restricted_where_it_is_used(name):
    text = dict(MODULES)[name]
    calls = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and "load" in ast.unparse(n.func)
    ]
    restricted = [c for c in calls if ast.unparse(c.func) == "torch.load"]
    assert len(restricted) == 1
    assert "weights_only=True" in ast.unparse(restricted[0])
