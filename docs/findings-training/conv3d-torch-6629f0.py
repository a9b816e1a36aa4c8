"""torch differs by 3e-08 (relative) in the gradient of Conv3D layer 'conv3d_1'
Exits 1 while the bug is there, 0 when it is gone. Needs keras and numpy."""
import os, subprocess, sys, numpy as np
TARGETS = {name: {"KERAS_BACKEND": name} for name in ('tensorflow', 'torch')}
EXPECTED = np.array([[[[[-0.0013540220972003245, 0.04822810603485515], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]]], "float64")  # by tensorflow in float64
if "KERAS_BACKEND" not in os.environ:  # every target in a process of its own
    def run(name, env):
        command = [env.get("PYTHON", sys.executable), __file__]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True)
        died = f"WRONG: exit code {done.returncode} {done.stderr.strip()[-150:]}"
        return print(f"{name:24}", " ".join((done.stdout or died).split())) or done.returncode
    sys.exit(any([run(name, env) for name, env in TARGETS.items()]))
import keras
x0 = np.array([[[[[-1.2457014681212044, -2.8998791906329533], [-0.608521972035097, -1.6863819321192202], [0.5308870189247359, -0.405779304775975], [-0.5066452735106997, -2.601352523452121]], [[1.3395143134825152, -0.717667128010873], [-0.8306009699048038, -0.9865200499792453], [0.397832207906127, -0.1650371731211563], [0.9309920480501518, -1.3734453427429163]], [[-0.5844955201428249, -0.3038459065880747], [0.5258305301498274, 1.606460797088191], [1.2100918391931377, -0.14284086107194638], [1.1312233942016365, -0.28801032328388965]], [[0.5690645558390647, -0.4416509274224742], [0.9717859843380605, 1.5995168293172461], [0.05631150980546045, -0.6200802115047674], [1.5176506630335722, 2.2147885834595695]], [[-0.13625224464766275, 1.913952316144599], [-0.22425025039827612, -1.75660000251643], [0.2111050914247726, -0.43316510078100784], [0.5205851255682356, -2.153817444382749]]], [[[0.357086530667014, -1.0518092657543976], [-0.5662856124681424, 0.6212363950184114], [-1.3024709221846584, -0.6449400892581673], [-0.5169374696715586, -0.4772256106268253]], [[-1.464897477468897, 1.0216568585512775], [2.1526978543089266, 0.608097408439506], [-1.4581922637034317, 1.2707582585941903], [0.0873428285907455, 0.3827931019429002]], [[1.0091618258783783, -0.21658349092277762], [1.0212308787770508, -0.3459943879908578], [-0.5794848172514794, 0.8706864672526534], [-1.3675023126606909, 0.035558101350873075]], [[-0.19293343603816715, 0.3185194144466012], [-1.3153470098239644, -1.102580256504813], [-0.5200208902322487, 0.7844152191784528], [0.8180609415359386, 1.2238905124436177]], [[0.14444833664316958, 1.0155384759550468], [0.6558273882828077, 0.4333724198709357], [2.032546776202271, 0.6810642239673588], [-0.040776441840653044, 0.05429640887671187]]], [[[-0.03348744662052302, 0.47557274763585355], [-1.5492718070586053, -0.13635528752520043], [1.2181053825420216, -0.5952679014110231], [-1.5795765439226443, 0.7634190992647678]], [[1.290591278612168, -0.5644578726484546], [0.5172017298033486, -0.22841843986112717], [1.2756741524364041, -0.062498091830452386], [-0.6818443879861177, 0.6179055093897088]], [[1.741884274791702, -2.7484657623546602], [1.3654377119346788, -0.12758461557268422], [0.5761455144829637, -1.0365850242535641], [0.13056775855554517, 0.5629512764678406]], [[-1.8817686658922632, -0.4836655122716801], [2.575664737526932, 0.012775414814905593], [-0.6174738453020472, -0.4633914006302606], [0.346925510598595, -1.9988397761471002]], [[1.9140694106034908, 1.0818526810223803], [0.07830552606711817, -1.3467673659252053], [-0.08020991859529482, -2.4057362699199283], [2.7177274358564056, -0.3858385365489028]]]]], "float64")
layer = keras.layers.Conv3D(filters=2, kernel_size=(1, 1, 1), strides=(2, 2, 2), padding='valid', data_format='channels_last', dilation_rate=(1, 1, 1), groups=1, activation='hard_sigmoid', use_bias=False, dtype='float64')
call = lambda x0: keras.tree.flatten(layer(x0))
call(x0)  # creates the weights
layer.set_weights([np.array([[[[[-0.01456805226945697, -0.01326618410658349], [0.5188907707085496, 0.20924471486079255]]]]], "float64")])
c0 = np.array([[[[[0.5576677261266291, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]]], "float64")
number = lambda x0: keras.ops.sum(call(x0)[0] * keras.ops.convert_to_tensor(c0))
def gradients(number, arrays, variables):  # of a number by what it is given and by variables
    name, mode = keras.backend.backend(), os.environ.get("MODE")
    moved = [i for i, a in enumerate(arrays) if "float" in str(a.dtype)]
    if name == "tensorflow":
        import tensorflow as tf
        def pull():
            feeds = [tf.constant(a) for a in arrays]
            with tf.GradientTape() as tape:
                tape.watch([feeds[i] for i in moved])
                value = number(*feeds)
            return tape.gradient(value, [*[feeds[i] for i in moved], *[v.value for v in variables]])
        found = (tf.function(pull, jit_compile=mode == "xla") if mode else pull)()
        found = [None if g is None else tf.convert_to_tensor(g) for g in found]
    elif name == "torch":
        import torch
        feeds = [torch.tensor(a) for a in arrays]
        sources = [*[feeds[i].requires_grad_() for i in moved], *[v.value for v in variables]]
        value = (torch.compile(number) if mode else number)(*feeds)
        found = torch.autograd.grad(value, sources, allow_unused=True)
    else:
        import jax
        def pure(sources):
            feeds = [sources[moved.index(i)] if i in moved else a for i, a in enumerate(arrays)]
            with keras.StatelessScope(list(zip(variables, sources[len(moved):]))):
                return number(*feeds)
        grad = jax.jit(jax.grad(pure)) if mode else jax.grad(pure)
        found = grad([*[jax.numpy.asarray(arrays[i]) for i in moved], *[v.value for v in variables]])
    return [None if g is None else np.asarray(keras.ops.convert_to_numpy(g)) for g in found]
found = gradients(number, [x0], layer.trainable_variables)
y = np.array(np.nan if found[0] is None else found[0])  # the gradient of x0
right = (y.shape, y.dtype) == (EXPECTED.shape, EXPECTED.dtype)
right = right and np.allclose(y, EXPECTED, rtol=0, atol=4.8e-14, equal_nan=True)
sys.exit(print("ok:" if right else "WRONG:", y.dtype, y.shape, y.ravel()[:6]) or not right)
