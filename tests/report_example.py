"""Example results for the tests of the reports, in the form of docs/result-json.md."""

from __future__ import annotations

import base64
import copy
import io
import statistics
from typing import Any

from outvote.core.causes import causes_of

Data = dict[str, Any]

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
CLASS_BINS = ["16", "15-8", "7-4", "3-2", "1", "0"]
MAD_BINS = ["0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1"]
RELATIVE_BINS = ["<1e-6", "<1e-4", "<1e-2", "<1", "≥1"]
FAULTY = "block1_bn"


def consistent() -> Data:
    """Three targets that agree up to rounding."""
    names = ["tensorflow", "jax", "torch"]
    pairs = [("tensorflow", "jax"), ("tensorflow", "torch"), ("jax", "torch")]
    return result(
        "consistent",
        "All 3 targets agree on all 200 inputs.",
        [target(name) for name in names],
        [],
        [comparison(a, b, explained="rounding" if "torch" in (a, b) else None) for a, b in pairs],
    )


def inconsistent() -> Data:
    """`patched` computes batch normalisation wrongly and is outvoted by three libraries."""
    names = ["tensorflow", "jax", "torch", "openvino"]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    comparisons = [
        comparison(a, b, explained="rounding" if "openvino" in (a, b) else None) for a, b in pairs
    ]
    comparisons += [comparison(name, "patched", apart=True) for name in names]
    made = result(
        "inconsistent",
        f"patched is outvoted by 4 libraries: its BatchNormalization layer {FAULTY} is faulty.",
        [target(name) for name in names] + [target("patched", library="tensorflow", wrong=True)],
        [bug(small_map())],
        comparisons,
    )
    apart = [pair for pair in comparisons if pair["inconsistent"]]
    made["unique_inconsistencies"] = [
        {
            "id": f"U{place + 1}",
            "metric": metric["name"],
            "pattern": metric["pattern"],
            "pairs": [pair["targets"] for pair in apart],
            "findings": [made["findings"][0]["fingerprint"]],
        }
        for place, metric in enumerate(apart[0]["metrics"])
        if metric["inconsistent"]
    ]
    made["clusters"] = [
        {
            "layer_kind": "BatchNormalization",
            "target": "patched",
            "uniques": [unique["id"] for unique in made["unique_inconsistencies"]],
            "findings": [made["findings"][0]["fingerprint"]],
        }
    ]
    made["twins"] = [twin("simplified", "spoilt", FAULTY), twin("int8", "precision", None)]
    made["examples"] = [example(17, "seven", "one"), example(42, "three", "eight")]
    return made


def crash() -> Data:
    """One target's process dies, another never ends; nothing is localised."""
    made = consistent()
    died = target("openvino") | {
        "outcome": "crash",
        "message": "Process died with signal 11 (segmentation fault).",
        "layer": "conv2d_3",
        "accuracy": None,
        "precision": {},
        "peak_memory": 0,
    }
    made["targets"].append(died)
    made["verdict"] = "inconsistent"
    made["summary"] = "openvino crashes in layer conv2d_3; the 3 other targets agree."
    made["findings"] = [
        bug(None)
        | {
            "fingerprint": "c4a5c4a5c4a5",
            "kind": "crash",
            "relation": None,
            "title": "openvino crashes in Conv2D",
            "reason": "The process died with signal 11 twice in a row; 3 targets run the model.",
            "targets": ["openvino"],
            "accused": "openvino",
            "layer": "conv2d_3",
            "layer_kind": "Conv2D",
            "distance": None,
            "metric": None,
        }
    ]
    return made


def big(count: int = 1000) -> Data:
    """A DenseNet-like graph: every block is fed with the ends of the eight blocks before it."""
    made = inconsistent()
    made["model"]["layers"] = count
    made["findings"] = [bug(dense_map(count)) | {"layer": middle(count)}]
    return made


def two_maps() -> Data:
    """Two findings with a map each: only one may be alive."""
    made = inconsistent()
    second = bug(dense_map(60)) | {
        "fingerprint": "0123456789ab",
        "title": "jax differs in normalisation",
        "triage": "difference",
        "layer": middle(60),
    }
    made["findings"].append(second)
    return made


def hostile() -> Data:
    """Every name that comes from outside tries to become markup or code."""
    made = inconsistent()
    made["summary"] = made["model"]["name"] = HOSTILE
    for one in made["targets"]:
        one["message"] = HOSTILE
    finding = made["findings"][0]
    for key in ("title", "reason", "layer", "layer_kind", "accused"):
        finding[key] = HOSTILE
    finding["repro"] = "javascript:window.hacked=1"
    finding["parameters"] = {HOSTILE: HOSTILE}
    made["examples"][0]["picture"] = "javascript:window.hacked=1"
    chart = finding["localization"]
    chart["isolated"] = {"first": HOSTILE, "ranking": [rank(HOSTILE, HOSTILE, 1.0)]}
    for node in chart["map"]["nodes"]:
        if node["id"] == FAULTY:
            node |= {"id": HOSTILE, "kind": HOSTILE, "config": {HOSTILE: HOSTILE}}
    chart["map"]["edges"] = [
        [HOSTILE if end == FAULTY else end for end in edge] for edge in chart["map"]["edges"]
    ]
    return made


def result(
    verdict: str, summary: str, targets: list[Data], findings: list[Data], comparisons: list[Data]
) -> Data:
    return {
        "schema": 2,
        "command": "check",
        "outvote": "0.1.0",
        "created": "2026-03-14T09:26:53Z",
        "seconds": 41.7,
        "verdict": verdict,
        "summary": summary,
        "interrupted": False,
        "warnings": [],
        "gate": {
            "fail_on": "any",
            "known_file": None,
            "baseline": None,
            "failing": [],
            "notes": [],
        }
        | {"stale": [], "expired": []},
        "targets": targets,
        "findings": findings,
        "causes": causes_of(findings),
        "model": {
            "name": "small_resnet",
            "path": "models/small_resnet.keras",
            "layers": 25,
            "weights": 78042,
            "inputs": [{"name": "image", "shape": [None, 28, 28, 1], "dtype": "float32"}],
            "outputs": [{"name": "label", "shape": [None, 10], "dtype": "float32"}],
        },
        "data": {"source": "data/digits.npz", "instances": 200, "truth": "labels"},
        "settings": {
            "metrics": ["class", "mad", "relative"],
            "k": 5,
            "class_threshold": 16,
            "mad_threshold": 0.2,
            "p": 0.0,
            "tolerance": 1e-4,
            "noise_factor": 10.0,
            "batch_size": 32,
            "seed": 0,
        },
        "comparisons": comparisons,
        "unique_inconsistencies": [],
        "clusters": [],
        "version_matrix": None,
        "twins": [],
        "training": None,
        "relations": [],
        "examples": [],
    }


def twin(name: str, verdict: str, spoilt: str | None) -> Data:
    """A transformed model; node by node its error grows."""
    return {
        "target": f"twin:{name}",
        "transformation": name,
        "original": "onnxruntime",
        "verdict": verdict,
        "distance": 0.031,
        "answers": {"instances": 360, "top1_changed": 3, "class_distance": 16.0},
        "spoilt": spoilt,
        "layers": [
            {"layer": "stem", "kind": "Conv", "alone": 0.004, "carried": 0.004},
            {"layer": FAULTY, "kind": "Gemm", "alone": 0.02, "carried": 0.031},
            {"layer": "soft", "kind": "Softmax", "alone": None, "carried": 0.03},
        ],
    }


def target(name: str, library: str | None = None, wrong: bool = False) -> Data:
    return {
        "name": name,
        "library": library or name,
        "mode": "eager",
        "versions": {"keras": "3.15.1", library or name: "2.21.0"},
        "precision": {"float": "float32"},
        "python": "3.11.2",
        "platform": "Linux x86_64",
        "setup": "patch_bn.py" if wrong else None,
        "requirements": [],
        "config": None,
        "outcome": "ok",
        "message": "",
        "layer": None,
        "seconds": 6.4,
        "peak_memory": 734003200,
        "accuracy": {"1": 0.61 if wrong else 0.97, "5": 0.88 if wrong else 1.0},
    }


def comparison(a: str, b: str, apart: bool = False, explained: str | None = None) -> Data:
    tiny = 4.1e-5 if explained else 3.2e-7
    metrics = [
        metric("class", 16, 16.0 if apart else 0.0, CLASS_BINS, [9, 31, 20, 12, 8, 120], apart),
        metric("mad", 0.2, 0.91 if apart else tiny, MAD_BINS, [130, 38, 20, 8, 4], apart),
        metric("relative", 1e-4, 0.734 if apart else tiny, RELATIVE_BINS, [0, 0, 7, 193, 0], apart),
    ]
    return {
        "targets": [a, b],
        "inconsistent": apart,
        "explained": explained,
        "mismatch": None,
        "noise": None if apart else 6.0e-5,
        "worst_input": 17,
        "accuracy_difference": {"1": 0.36 if apart else 0.0, "5": 0.12 if apart else 0.0},
        "metrics": metrics,
    }


def metric(
    name: str, threshold: float, maximum: float, bins: list[str], counts: list[int], apart: bool
) -> Data:
    equal = [0] * len(bins)
    equal[-1 if name == "class" else 0] = sum(counts)
    return {
        "name": name,
        "output": 0,
        "threshold": threshold,
        "maximum": maximum,
        "mean": maximum / 9,
        "triggering": 9 if apart else 0,
        "inconsistent": apart,
        "pattern": {"bins": bins, "counts": counts if apart else equal},
    }


def bug(localization: Data | None) -> Data:
    return {
        "fingerprint": "9f2c5a7be013",
        "kind": "inconsistency",
        "relation": None,
        "stage": None,
        "title": "patched is outvoted in BatchNormalization",
        "reason": "tensorflow, jax, torch and openvino agree within 4.1e-05; patched differs from "
        "each of them by 0.73, and the layer alone, fed with the same tensors, differs too.",
        "targets": ["patched"],
        "accused": "patched",
        "layer": FAULTY,
        "layer_kind": "BatchNormalization",
        "parameters": {"epsilon": 0.01},
        "causes": [],
        "config": {"axis": [3], "epsilon": 0.001, "momentum": 0.99, "center": True},
        "minimal": {
            "layers": 1,
            "numbers": 5,
            "layers_before": 1,
            "numbers_before": 3136,
            "seconds": 1.5,
            "complete": True,
        },
        "evidence": {
            "tolerance": 9.5e-07,
            "vote": "4 independent implementations agree",
            "reference": "an independent NumPy computation in float64",
            "errors": {"tensorflow": 1.2e-08, "jax": 1.2e-08, "torch": 0.0, "patched": 0.73},
            "shown_again": 1,
            "fresh_workers": 1,
        },
        "triage": "bug",
        "distance": 0.734,
        "metric": "relative",
        "inputs": [17, 42, 3, 150, 88, 91, 5, 12, 66, 140, 7, 199],
        "repro": "findings/9f2c5a7be013/repro.py",
        "detail": "",
        "known": None,
        "localization": localization,
    }


def rank(layer: str, kind: str, value: float) -> Data:
    return {"layer": layer, "kind": kind, "value": value}


def small_map() -> Data:
    """A small residual network of 25 layers whose normalisations are wrong."""
    layers: list[tuple[str, str, list[str]]] = [("image", "InputLayer", [])]
    layers += [("stem_conv", "Conv2D", ["image"]), ("stem_relu", "ReLU", ["stem_conv"])]
    last = "stem_relu"
    for block in range(1, 4):
        name = f"block{block}"
        layers += [
            (f"{name}_conv", "Conv2D", [last]),
            (f"{name}_bn", "BatchNormalization", [f"{name}_conv"]),
            (f"{name}_relu", "ReLU", [f"{name}_bn"]),
            (f"{name}_shortcut", "Conv2D", [last]),
            (f"{name}_add", "Add", [f"{name}_relu", f"{name}_shortcut"]),
            (f"{name}_pool", "MaxPooling2D", [f"{name}_add"]),
        ]
        last = f"{name}_pool"
    layers += [("average", "GlobalAveragePooling2D", [last]), ("dropout", "Dropout", ["average"])]
    layers += [("dense", "Dense", ["dropout"]), ("label", "Softmax", ["dense"])]
    return localization(layers, {f"block{block}_bn" for block in range(1, 4)})


def dense_map(count: int) -> Data:
    """Exactly `count` layers in dense blocks; one normalisation in the middle is wrong."""
    layers: list[tuple[str, str, list[str]]] = [("image", "InputLayer", [])]
    ends = ["image"]
    while len(layers) < count:
        last, name = ends[-1], f"block{len(ends)}"
        for kind in ("bn1", "relu1", "conv1", "bn2", "relu2", "conv2"):
            layers.append((f"{name}_{kind}", kind[:-1], [last]))
            last = f"{name}_{kind}"
        layers.append((f"{name}_concat", "Concatenate", [last, *ends[-8:]]))
        ends.append(f"{name}_concat")
    return localization(layers[:count], {middle(count)})


def middle(count: int) -> str:
    """The faulty layer of `dense_map`."""
    return f"block{count // 14}_bn1"


def localization(layers: list[tuple[str, str, list[str]]], wrong: set[str]) -> Data:
    """δ, R and the third quartile, as CRADLE's equations 3, 5 and 6 would give them."""
    delta: dict[str, float] = {}
    nodes: list[Data] = []
    for place, (name, kind, before) in enumerate(layers):
        above = max((delta[other] for other in before), default=0.0)
        growth = 40.0 if name in wrong else 0.96 + place % 5 * 0.02
        delta[name] = above * growth if before else 3e-7
        nodes.append(
            {
                "id": name,
                "kind": kind,
                "delta": delta[name],
                "rate": (delta[name] - above) / (above + 1e-7),
                "isolated": 0.21 if name in wrong else (1.1e-7 if place else None),
                "tolerance": 1e-5 if place else None,
                "faulty": name in wrong,
                "shape": [1, 28, 28, 1 + place % 64],
                "config": {"name": name, "trainable": True, "axis": [3], "epsilon": 0.001},
            }
        )
    quartile = statistics.quantiles([node["rate"] for node in nodes], n=4)[2]
    for node in nodes:
        node["red"] = node["rate"] > quartile
    faulty = [node for node in nodes if node["faulty"]]
    by_rate = sorted(nodes, key=lambda node: -node["rate"])
    return {
        "targets": ["tensorflow", "patched"],
        "direction": "forward",
        "input": 17,
        "introduction_rate": {
            "threshold": quartile,
            "first": next(node["id"] for node in nodes if node["red"]),
            "ranking": [rank(n["id"], n["kind"], n["rate"]) for n in by_rate[:10]],
        },
        "isolated": {
            "first": faulty[0]["id"],
            "ranking": [rank(n["id"], n["kind"], n["isolated"]) for n in faulty[:10]],
        },
        "map": {"nodes": nodes, "edges": [[b, name] for name, _, before in layers for b in before]},
    }


def example(index: int, truth: str, wrong: str) -> Data:
    right = [[truth, 0.93], [wrong, 0.04], ["nine", 0.02], ["two", 0.007], ["zero", 0.003]]
    mistaken = copy.deepcopy(right)
    mistaken[0][0], mistaken[1][0] = wrong, "four"
    mistaken[0][1], mistaken[1][1] = 0.58, 0.21
    names = ["tensorflow", "jax", "torch", "openvino"]
    answers: list[Data] = [{"target": name, "top": right} for name in names]
    answers.append({"target": "patched", "top": mistaken})
    return {"input": index, "truth": truth, "picture": picture(truth), "answers": answers}


def picture(word: str) -> str:
    """A 28 by 28 picture of a digit as a data URI."""
    from PIL import Image, ImageDraw

    image = Image.new("L", (28, 28), 0)
    lines = [(6, 6), (21, 6), (12, 23)] if word == "seven" else [(7, 5), (20, 9), (9, 14), (20, 22)]
    ImageDraw.Draw(image).line(lines, fill=240, width=3)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
