"""What `make docs` adds to the pages in docs/: the front page, model cards, notebooks and the API.

    README.md                            → index.md
    CHANGELOG.md, SECURITY.md            → pages; LICENSE and CITATION.cff as they are
    src/torchsite/weights/NAME/README.md → models/NAME.md
    docs/notebooks/NAME.py               → notebooks/NAME.md, with what its cells gave, and NAME.ipynb
    the public names of each part        → api/PART.md
    the fields of a recipe               → tables at the end of recipes.md
    build/page, if it is there           → try.md, with that page in it

Links are those of the repository, so that the same files read well there; here they are turned into links of
the site, and a link to a file that the site does not have becomes plain text.
"""

import dataclasses
import inspect
import posixpath
import re
import runpy
import tempfile
from importlib import import_module
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
NOTEBOOKS = runpy.run_path(str(ROOT / "tools" / "notebooks.py"))
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

# Files of the repository, and where the site has them.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
}
AS_THEY_ARE = ("LICENSE", "CITATION.cff")
PARTS = (
    *("transforms", "data", "model", "objective", "attribution", "metrics", "training"),
    *("evaluation", "report", "errors", "results"),
)
STATIC_PAGE = ROOT / "build" / "page"  # where `torchsite page` may have left one
SEEN_BY = (
    "Read from the disk, some browsers refuse to start it: `python -m http.server --directory build/site`."
)


def card_places() -> dict[str, str]:
    """The card of each model that comes with the package, and its page."""
    cards = sorted((ROOT / "src" / "torchsite" / "weights").glob("*/README.md"))
    return {str(path.relative_to(ROOT)): f"models/{path.parent.name}.md" for path in cards}


def places() -> dict[str, str]:
    """Every file of the repository that has a place in the site, outside docs/ or under another name."""
    notebooks = {
        f"docs/notebooks/{p.name}": f"notebooks/{p.stem}.md" for p in NOTEBOOKS["FOLDER"].glob("*.py")
    }
    return PLACES | {name: name for name in AS_THEY_ARE} | card_places() | notebooks


def site_links(markdown: str, source: str, page: str) -> str:
    """The text of a file of the repository with its links turned into those of the site."""
    known, here = places(), posixpath.dirname(page)

    def turned(found: re.Match[str]) -> str:
        picture, text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = known.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if "://" in target or not (ROOT / path).exists():
            return found[0]
        if not place or (ROOT / path).is_dir():
            return text
        return f"{picture}[{text}]({posixpath.relpath(place, here or '.')}{anchor or ''})"

    parts = FENCE.split(markdown)  # every second one is code
    return "".join(part if i % 2 else LINK.sub(turned, part) for i, part in enumerate(parts))


def without_front_matter(text: str) -> str:
    """A card without the lines that are for the hub."""
    return re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)


def api_page(part: str) -> str:
    """The public names of a part; its docstrings are read from the source."""
    module = import_module(f"torchsite.{part}")
    homes = {name: _home(module, name) for name in getattr(module, "__all__", _own_names(module))}
    shown = [f"::: {home}" for home in homes.values() if home]
    return "\n\n".join([f"# torchsite.{part}", (module.__doc__ or "").strip(), *shown]) + "\n"


def _own_names(module: object) -> list[str]:
    return [
        n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and n[0] != "_"
    ]


def _home(module: object, name: str) -> str:
    """Where a class or a function is defined; tables and types have no page of their own."""
    value = getattr(module, name)
    home = getattr(value, "__module__", "")
    named = isinstance(value, type) or callable(value)
    return (
        f"{home}.{name}" if named and home.startswith("torchsite.") and hasattr(value, "__qualname__") else ""
    )


def recipe_tables() -> str:
    """The fields of a recipe with their defaults, read from the classes that hold them."""
    from torchsite.objective import Term
    from torchsite.training import TrainingConfig
    from torchsite.training.recipes import ModelSettings
    from torchsite.transforms import TransformFamily

    parts = {"model": ModelSettings, "training": TrainingConfig, "training.family": TransformFamily}
    parts |= {f"term {name}": kind for name, kind in sorted(Term.tags.items())}
    return "".join(f"\n## {title}\n\n{_fields(kind)}" for title, kind in parts.items())


def _fields(kind: type) -> str:
    """The first lines of a class's docstring, and a table of its fields."""
    rows = [f"| `{f.name}` | {_default(f)} |" for f in dataclasses.fields(kind) if f.init]
    said = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
    return "\n".join([said, "", "| field | default |", "|---|---|", *rows, ""])


def _default(field: dataclasses.Field) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is dataclasses.MISSING:
        return "must be given"
    value = field.default_factory()
    return "its own fields, below" if dataclasses.is_dataclass(value) else f"`{value!r}`"


def notebook_files(name: str, *, run: bool) -> dict[str, str | bytes]:
    """The page of a notebook, its pictures, and the file for Jupyter."""
    cells = NOTEBOOKS["read_cells"]((NOTEBOOKS["FOLDER"] / f"{name}.py").read_text())
    if run:
        with tempfile.TemporaryDirectory() as folder:
            cells = NOTEBOOKS["run_cells"](cells, Path(folder))
    text, pictures = NOTEBOOKS["to_markdown"](cells, name)
    text = site_links(text, f"docs/notebooks/{name}.py", f"notebooks/{name}.md")
    found: dict[str, str | bytes] = {f"notebooks/{picture}": data for picture, data in pictures.items()}
    return found | {
        f"notebooks/{name}.md": f"{text}\n[This page as a notebook for Jupyter]({name}.ipynb)\n",
        f"notebooks/{name}.ipynb": NOTEBOOKS["to_ipynb"](cells),
    }


def generated(*, run_notebooks: bool) -> dict[str, str | bytes]:
    """All files of the site that do not stand in docs/, by their place."""
    found: dict[str, str | bytes] = {name: (ROOT / name).read_bytes() for name in AS_THEY_ARE}
    for source, page in (PLACES | card_places()).items():
        found[page] = site_links(without_front_matter((ROOT / source).read_text()), source, page)
    found |= {f"api/{part}.md": api_page(part) for part in PARTS}
    for path in sorted(NOTEBOOKS["FOLDER"].glob("*.py")):
        found |= notebook_files(path.stem, run=run_notebooks)
    return found | static_page()


def static_page() -> dict[str, str | bytes]:
    """The page that needs no server, if it has been made, in a frame of its own."""
    if not (STATIC_PAGE / "index.html").is_file():
        return {}
    files = {
        f"page/{p.relative_to(STATIC_PAGE)}": p.read_bytes() for p in STATIC_PAGE.rglob("*") if p.is_file()
    }
    frame = (
        '<iframe src="page/index.html" title="torchsite" width="100%" height="900" loading="lazy"></iframe>'
    )
    return files | {"try.md": f"# Try it\n\n{frame}\n\n[The page by itself](page/index.html). {SEEN_BY}\n"}


# What MkDocs calls


def on_config(config):
    """Add to the navigation what is generated, and pages of docs/ that it does not name."""
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    own = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))
    more = [page for page in own if page not in named]
    (reference,) = (section["Reference"] for section in config.nav if "Reference" in section)
    reference += [{"Models": list(card_places().values())}, {"API": [{p: f"api/{p}.md"} for p in PARTS]}]
    config.nav = [
        config.nav[0],
        *([{"Try it": "try.md"}] if static_page() else []),
        *config.nav[1:],
        *([{"More": more}] if more else []),
        {
            "About": [
                {"What is new": "changelog.md"},
                {"What is trusted": "security.md"},
                {"Contributing": "contributing.md"},
            ]
        },
    ]
    return config


def on_files(files: Files, config) -> Files:
    """Add the generated files."""
    for place, content in generated(run_notebooks=config.extra["run_notebooks"]).items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """Links of the pages in docs/ that lead out of it."""
    uri = page.file.src_uri
    if page.file.generated_by:
        return markdown
    more = recipe_tables() if uri == "recipes.md" else ""
    return site_links(markdown, f"docs/{uri}", uri) + more
