"""openvino:onnx fails in Compress layer 'v6': the process died of SIGFPE
Exits 1 while the bug is there, 0 when it is gone, 2 when no target runs. Needs onnx, numpy and the
runtimes. Without TARGET in the environment it runs every target in a process of its own."""
import os, runpy, subprocess, sys, numpy as np
TARGETS = {
    'onnxruntime': {'TARGET': 'onnxruntime', 'RUNTIME': 'onnxruntime', 'LEVEL': 'ORT_DISABLE_ALL'},
    'onnx-reference': {'TARGET': 'onnx-reference', 'RUNTIME': 'reference'},
    'openvino:onnx': {'TARGET': 'openvino:onnx', 'RUNTIME': 'openvino'},
}
EXPECTED = np.zeros((0,), "int64")  # by onnxruntime, onnx-reference: what they agree on

def build():
    import onnx
    from onnx import helper, numpy_helper
    x0 = np.array([[[1, 0]]], "int64")
    nodes = [
        helper.make_node('Compress', ['x0', 'w0'], ['y0']),
    ]
    inputs = [
        helper.make_tensor_value_info('x0', 7, [1, 1, 2]),
    ]
    constants = [
        numpy_helper.from_array(np.array([False], "bool"), 'w0'),
    ]
    opset = [helper.make_opsetid('', 13)]
    graph = helper.make_graph(nodes, 'graph', inputs, [onnx.ValueInfoProto(name='y0')], constants)
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return model, [x0]

def onnxruntime(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, os.environ["LEVEL"])
    providers = ["CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    known = {item.name for item in session.get_inputs()}
    names = [item.name for item in model.graph.input]
    return session.run(None, {n: x for n, x in zip(names, feeds) if n in known})

def openvino(model, feeds):
    import openvino as ov
    core = ov.Core()
    read = core.read_model(model.SerializeToString())
    given = {item.name: x for item, x in zip(model.graph.input, feeds)}
    named = [next(n for n in port.get_names() if n in given) for port in read.inputs]
    config = {} if os.environ.get("FAST") else {"INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(read, "CPU", config).create_infer_request()
    for place, name in enumerate(named):
        request.set_input_tensor(place, ov.Tensor(given[name]))
    request.infer()
    return [np.array(request.get_output_tensor(i).data) for i in range(len(model.graph.output))]

def reference(model, feeds):
    from onnx.reference import ReferenceEvaluator
    names = [item.name for item in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, feeds)))

RUNNERS = {"onnxruntime": onnxruntime, "openvino": openvino, "reference": reference}

def judge(y):
    if EXPECTED is None or y.shape != EXPECTED.shape or y.dtype != EXPECTED.dtype:
        return f"WRONG: shape {y.shape}, {y.dtype}"
    y, right = np.array([y, EXPECTED], "float64")
    apart = np.where((y == right) | (np.isnan(y) & np.isnan(right)), 0, abs(y - right))
    d = np.max(apart, initial=0) / np.max(abs(right), initial=1e-30, where=np.isfinite(right))
    return f"{'ok' if d <= 1 else 'WRONG'}: relative distance {d:.3g}, {np.ravel(y)[:6]}"

if "TARGET" in os.environ:
    if "SETUP" in os.environ:
        runpy.run_path(os.environ["SETUP"])
    try:
        text = judge(np.asarray(RUNNERS[os.environ["RUNTIME"]](*build())[0]))
    except Exception as error:
        text = f"{'ok' if EXPECTED is None else 'WRONG'}: {type(error).__name__}: {error}"
    sys.exit(print(" ".join(text.split())[:200]) or text.startswith("WRONG"))
codes = []
for name, env in TARGETS.items():
    command = [env.get("PYTHON", sys.executable), __file__]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
    print(f"{name:24}", done.stdout.strip() or f"WRONG: died with exit code {done.returncode}")
    codes.append(done.returncode)
sys.exit(any(codes))
