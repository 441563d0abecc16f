"""The layers of the package, and a reader of imports that tells which ones go the wrong way."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "torchsite"
LAYERS = [
    {
        "shapes",
        "errors",
        "extras",
        "randomness",
        "modes",
        "configs",
        "distributed",
        "files",
        "layers",
        "results",
        "version",
    },
    {"transforms", "data"},
    {"model"},
    {"objective", "attribution", "metrics"},
    {"training"},
    {"evaluation"},
    {"report"},
    {"autotrain"},
    {"web"},
    {"cli"},
]
# Attribution explains any network: it knows nothing of SITE.
FORBIDDEN = {("attribution", "model")}


def layer(part: str) -> int:
    """The number of a part's layer; a part that has none is an error."""
    for number, parts in enumerate(LAYERS, start=1):
        if part in parts:
            return number
    raise ValueError(f"{part} stands in no layer: add it to LAYERS and to docs/architecture.md")


def sources() -> list[tuple[str, str]]:
    """Every module of the package with its text, by dotted name without `torchsite`."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [(dotted_name(path.relative_to(PACKAGE)), path.read_text()) for path in files]


def dotted_name(path: Path) -> str:
    """`transforms/base.py` is `transforms.base`, `transforms/__init__.py` is `transforms.__init__`."""
    return ".".join(path.with_suffix("").parts)


def imports(name: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name (without `torchsite`) of all imports from the package, wherever they stand."""
    package = ["torchsite", *name.split(".")[:-1]]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in found:
            if target.split(".")[0] == "torchsite":
                yield node.lineno, target.removeprefix("torchsite").removeprefix(".")


def imports_of_experiments(source: str) -> list[int]:
    """The lines of a module that import the experiments, which the installed package does not have."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "experiments")
        or (
            isinstance(node, ast.Import)
            and any(alias.name.split(".")[0] == "experiments" for alias in node.names)
        )
    ]


def wrong_imports(name: str, source: str) -> list[str]:
    """What a module imports against the order of the layers."""
    part = name.split(".")[0]
    return [
        f"torchsite.{name}, line {line}: {part} (layer {layer(part)}) may not import torchsite.{target}"
        for line, target in imports(name, source)
        if not allowed(part, target.split(".")[0])
    ]


def allowed(part: str, target: str) -> bool:
    """A part may use itself, the layers before its own, and within the first layer its neighbours."""
    if part == target:
        return True
    if (part, target) in FORBIDDEN or not target:
        return False
    return layer(target) < layer(part) or layer(target) == layer(part) == 1


def first_layer_cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules that import one another in a circle; none if there is an order."""
    left = dict(graph)
    while free := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)
