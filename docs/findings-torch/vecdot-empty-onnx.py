"""linalg.vecdot of empty vectors: the exporter to ONNX gives no sum.
Exits 1 while it shows, 0 when it is gone. Needs torch, numpy and onnxruntime, onnxscript."""
import sys
import numpy as np, onnxruntime as ort, torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.linalg.vecdot(x, y)

inputs = (torch.zeros(1, 0), torch.zeros(1, 0),)
right = Model()(*inputs).numpy()
try:
    program = torch.onnx.export(torch.export.export(Model(), inputs), dynamo=True, verbose=False)
    session = ort.InferenceSession(program.model_proto.SerializeToString())
    names = [item.name for item in session.get_inputs()]
    found = session.run(None, {name: x.numpy() for name, x in zip(names, inputs)})[0]
except Exception as error:
    print("WRONG:", " ".join(str(error).split())[:300], "| PyTorch gives", right.tolist())
    sys.exit(1)
same = found.shape == right.shape and found.dtype == right.dtype
same = same and np.allclose(found, right, rtol=1e-4, atol=1e-6, equal_nan=True)
print("ok" if same else "WRONG", found.dtype, found.tolist(), "| PyTorch gives", right.dtype, right.tolist())
sys.exit(not same)
