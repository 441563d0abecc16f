"""What sections share: headings, where the numbers come from, links to figures."""

from dataclasses import dataclass

from torchsite.results import Result

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar10_cnn": "CIFAR-10 with the small CNN",
    "eurosat": "EuroSAT",
    "bam": "BAM",
    "mnist_sample": "embedded digits",
}


@dataclass(frozen=True)
class Pictures:
    """Where a page finds the figures of a result, and whether pictures of the data are among them."""

    folder: str = "pictures"
    of_data: bool = True

    def chart(self, name: str, title: str) -> str:
        """A link to a figure that shows no pictures of the data."""
        return f"\n![{title}]({self.folder}/results-{name}.png)\n"

    def sheet(self, name: str, title: str) -> str:
        """A link to a figure that does; nothing where they may not be shown."""
        return self.chart(name, title) if self.of_data else ""


def machine_words(result: Result) -> str:
    """The machine behind a result, for a page; nothing, if it was written before the instructions were."""
    known = result.machine
    if "instructions" not in known:
        return ""
    bf16 = "with" if known["native_bf16"] else "without"
    return f"{known['processor']}, {known['cores']} cores, {known['instructions']} {bf16} native bfloat16"


def source(result: Result, name: str = "") -> str:
    """The command and the file behind a section."""
    command = f"torchsite reproduce {name or result.name} --publish"
    where = "; ".join(filter(None, [result.time, machine_words(result)]))
    return f"`{command}` → `results/{result.name}.json` ({where})"
