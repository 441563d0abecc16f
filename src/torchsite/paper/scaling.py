"""docs/scaling.md: how to use more than one process, what grows how, and what was measured of it."""

from collections.abc import Callable
from pathlib import Path

from torchsite.paper.text import markdown_table
from torchsite.results import Result

INTRODUCTION = """# Beyond one process

Written by `python tools/write_results.py`; the tables come from the files in `results/`.

## Several processes, several machines

The same command, started by `torchrun`:

    torchrun --nproc-per-node 4 --no-python torchsite train photos --recipe photos.yaml --resume

or by Lightning, on the GPUs (or, with a number, the CPU processes) of one machine:

    torchsite train photos --recipe photos.yaml --devices 4

On a cluster with SLURM, one `torchrun` per node (a pattern to adapt: it was not run on a cluster of ours):

    #!/bin/bash
    #SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4 --time=12:00:00
    #SBATCH --requeue --signal=TERM@120 --open-mode=append

    head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    srun --kill-on-bad-exit=1 torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 4 --max-restarts 3 \\
        --rdzv-backend c10d --rdzv-endpoint "$head:29500" --rdzv-id "$SLURM_JOB_ID" \\
        --no-python torchsite train photos --recipe photos.yaml --out /shared/photos --resume
    [ -e /shared/photos/result.json ] || [ "${SLURM_RESTART_COUNT:-0}" -ge 20 ] \\
        || scontrol requeue "$SLURM_JOB_ID"

Two minutes before its time is over the job gets SIGTERM: a checkpoint is written, `torchsite` ends with
exit code 143, and the requeued job goes on. `--resume` may always be given: where nothing was begun, it
begins. The run's folder (and `TORCHSITE_CACHE`, if one copy of the decoded pictures is to serve all nodes)
must be on a file system that all nodes see. In Python, `fit(…, devices=4, num_nodes=2)` takes all options
of Lightning's `Trainer`.

**Any number of processes reaches the weights of one**, to the rounding of floating point. `batch_size` is
that of the global batch, which the processes divide; it must be a multiple of their number. Row order and
poses are drawn for the global batch, targets of learned features are exchanged, the loss of the prototypes
is a mean over the cells that the global batch covers, and batch norm takes its statistics over all
processes, on CPUs as on GPUs. On GPUs `sync_batchnorm=True` exchanges the layers for torch's own, which are
faster and mean the same. A test runs two processes against one in float64, where nothing hides behind
rounding, for all kinds of targets. In float32 rounding differs with the order of sums; small networks of a
hundred digits then drift apart by a thousandth of the loss within six steps, as they do between any two
ways of adding up. A run may go on with another number of processes. Validation divides the pictures among
the processes and counts each once.

**An extractor too large for one device**: `--strategy fsdp` (torch's FSDP, through Lightning) divides
parameters, gradients and what the optimisers remember among the processes; extractor and generator are whole
in a process only while they are at work there. Muon, averaged weights, checkpoints and the saved model are
the same as with DDP, and a run goes on after a rank has died: the test that compares two processes with one
covers it, on CPUs; it was not tried on GPUs. Convolutions run without the channels-last layout there, which
FSDP cannot divide. Other strategies are refused.
"""

COSTS = """
## What grows how

n pictures of p pixels each, c classes, d features at r cells (for the identity, d·r = p), a batch of b, R
processes:

| what | time | memory | remark |
|---|---|---|---|
| step: extractor, encoder | b·p / R | b·p / R | activations; `accumulate=k` divides the memory by k |
| step: prototypes, their loss | b·c·d·r / R | b·c·d·r / R | c = 100 shows; the decoder's trunk is shared |
| exchange of gradients | parameters | parameters | overlaps with the backward pass |
| exchange of batch statistics | 2 small sums per layer and pass | – | latency, not volume |
| targets `mean`, learned features | b·d·r | c·d·r | sums over ranks |
| targets `mean`, pixels | n·p once | c·p | one pass over the set |
| targets `nearest`, the table | n²·min(p, 588) once, in each process | 4·n·c·k bytes | k = `n_nearest` |
| targets `nearest`, learned features | b·d·r | n·d·r bytes | also in every checkpoint |
| targets `sampled` | c passes of the extractor | b·c·d·r | the authors' scheme |
| decoding a folder, once | n·file / R | a shard of 4,096 pictures | resumed after a kill |
| pictures while training | b·p from disk | none that must stay | mapped, the system drops what it needs |

For large sets choose `targets: mean`: the table of `nearest` grows with n² in time and n·c in memory
(200,000 pictures, 100 classes, k = 16: 1.3 GB), and its bank of features with n.

## Where memory goes

Parameters, gradients and two moments of AdamW: 16 bytes for each parameter, in each process (with
FSDP, of its share). Activations:
most of the rest; they shrink with `batch_size`, with `accumulate` (batch norm then sees the parts, so the
result differs from that of the whole batch) and with `precision: bf16`. Pictures are never in memory as a
whole: `Dataset.images` of a folder is a mapped file, and a batch copies its own rows. Two things copy:
`fit` without `validation` holds out random rows (give a validation set instead), and selecting rows by a
list (`data[rows]`); slices do not.
"""


def scaling_page(folder: Path) -> str:
    """The whole page, with whichever tables were measured."""
    sections: tuple[tuple[str, Callable[[Result], str]], ...] = (
        ("training_costs", _training),
        ("scaling", _steps),
        ("large_set", _large),
        ("export", _export),
    )
    found = [
        section(Result.load(folder / f"{name}.json"))
        for name, section in sections
        if (folder / f"{name}.json").is_file()
    ]
    return INTRODUCTION + COSTS + "".join(found)


def _training(result: Result) -> str:
    config = result.config
    verdicts = {None: "", True: "met", False: "missed"}
    rows = [
        [row["name"], row["times"], f"{row['ratio']:.2f}", row["target"], verdicts[row["met"]]]
        for row in result.values["rows"]
    ]
    return (
        f"\n## Training and explaining, in ratios\n\nThe models of the recipes, batches of "
        f"{config['batch_size']}, {config['threads']} threads; the variants of a line take turns, the best "
        "call of each counts. Sampled targets are the authors' scheme, their features without gradients. "
        f"`python benchmarks/training.py` → `results/training_costs.json` ({result.time})\n\n"
        + markdown_table(["ratio of", "measured", "ratio", "asked", ""], rows)
    )


def _steps(result: Result) -> str:
    text = ""
    if steps := result.values.get("steps"):
        first = next(iter(steps.values()))
        rows = [[name, f"{ms:.0f}", f"{ms / first:.2f}"] for name, ms in steps.items()]
        text += (
            "\n## One step, measured\n\nProcessor time of a training step of the default colour "
            "model (pyramid, "
            "lateral) on one CPU thread; the first line is the reference, the others change one thing. "
            f"`python benchmarks/scaling.py steps` → `results/scaling.json` ({result.time})\n\n"
            + markdown_table(["", "ms", "ratio"], rows)
            + "\n`precision`, `accumulate` and `compile` are off by default: bfloat16 is for machines that "
            "count in it, parts save memory and cost time, and compiling must earn the minutes that it "
            "takes. Measure on yours.\n"
        )
    if ranks := result.values.get("ranks"):
        rows = [[name, f"{seconds:.1f}"] for name, seconds in ranks.items()]
        text += (
            "\nAn epoch of the embedded digits (`python benchmarks/scaling.py ranks`), one "
            "thread a process:\n\n" + markdown_table(["", "seconds"], rows)
        )
    return text


def _large(result: Result) -> str:
    values = result.values
    seen = values["during training"]
    chosen = [seen[len(seen) * i // 5] for i in range(5)] + [seen[-1]]
    rows = [[f"{m['step']:.0f}", f"{m['own, MB']:.0f}", f"{m['mapped, MB']:.0f}"] for m in chosen]
    limit = f", with a hard limit of {values['limit, MB']:,} MB" if values["limit, MB"] else ""
    return (
        f"\n## A folder of {values['pictures']:,} pictures\n\nDecoded into a cache of "
        f"{values['cache, MB']:,.0f} MB "
        f"in {values['decoding, s']:.0f} s, then trained on for one epoch{limit}. Own memory "
        "stays; pages of the "
        "mapped cache come, and go when the system wants them. `python benchmarks/large_set.py` → "
        f"`results/large_set.json` ({result.time})\n\n"
        + markdown_table(["step", "own memory, MB", "mapped pages, MB"], rows)
    )


def _export(result: Result) -> str:
    values = result.values
    times, quality = values["milliseconds"], values["quality"]
    rows = [[name, *(f"{times[n][name]:.2f}" for n in times)] for name in times["1"]]
    return (
        "\n## Elsewhere: exported models\n\n`torchsite export MODEL --to onnx [--int8]` and "
        "`--to torch-export` write "
        "logits and heatmaps for any number of pictures. The model shipped as "
        f"`{result.config['model']}`, all heatmaps, {result.config['threads']} thread; the ONNX "
        "file differs from "
        f"PyTorch by at most {values['largest difference from PyTorch']:.1g}. "
        "`python benchmarks/export.py` → "
        f"`results/export.json` ({result.time})\n\n"
        + markdown_table(["", *(f"{n} pictures, ms" for n in times)], rows)
        + f"\nint8: accuracy {quality['accuracy, int8']:.4f} against {quality['accuracy, float32']:.4f} on "
        f"{result.config['data']}, the same answer for {quality['int8 agrees with float32']:.1%}, "
        f"{values['bytes']['int8'] / values['bytes']['float32']:.0%} of the size. Convolutions "
        "and matrix products "
        "are quantised; the product with the features and the sums are not, so heatmaps still "
        "add up to logits.\n"
    )
