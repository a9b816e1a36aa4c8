"""repeat_interleave with repeats in a tensor: OpenVINO cannot convert it.
Exits 1 while it shows, 0 when it is gone. Needs torch, numpy and openvino."""
import sys
import numpy as np, openvino as ov, torch

class Model(torch.nn.Module):
    def forward(self, x, n):
        return torch.repeat_interleave(x, n, dim=0)

inputs = (torch.zeros(2, 1), torch.tensor([0, 1]),)
right = Model()(*inputs).numpy()
try:
    model = ov.convert_model(torch.export.export(Model(), inputs))
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    found = ov.compile_model(model, "CPU", exact)([x.numpy() for x in inputs])[0]
except Exception as error:
    print("WRONG:", " ".join(str(error).split())[:300], "| PyTorch gives", right.tolist())
    sys.exit(1)
same = found.shape == right.shape and found.dtype == right.dtype
same = same and np.allclose(found, right, rtol=1e-4, atol=1e-6, equal_nan=True)
print("ok" if same else "WRONG", found.dtype, found.tolist(), "| PyTorch gives", right.dtype, right.tolist())
sys.exit(not same)
