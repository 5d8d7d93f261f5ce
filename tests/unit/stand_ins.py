"""Stand-ins for what a training run has: logits, a tensor of another framework, a module with hooks."""

import types

import numpy as np


def logits(scale=0.125, shape=(2, 3, 40, 64), seed=1):
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, *shape))
    return scale * q @ k.swapaxes(-1, -2)


class Tensor:
    """As far as a hook can tell, a PyTorch tensor: no `__array__` before `detach`, rows by slices, DLPack."""

    def __init__(self, array, requires_grad=True, dtype="float32"):
        self.array, self.requires_grad, self.dtype = array, requires_grad, dtype
        self.shape, self.hooks = array.shape, []

    def __getitem__(self, index):
        return Tensor(self.array[index], self.requires_grad, self.dtype)

    def detach(self):
        return Tensor(self.array, False, self.dtype)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.array, self.requires_grad)

    def numpy(self):
        return self.__array__()

    def reshape(self, *shape):
        return Tensor(self.array.reshape(*shape), self.requires_grad, self.dtype)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.dtype == "bfloat16":
            raise RuntimeError("can't call numpy() on this tensor")
        return self.array if dtype is None else self.array.astype(dtype)

    def __dlpack__(self, **options):
        if self.requires_grad:
            raise BufferError("can't export tensors that require gradient")
        if self.dtype == "bfloat16":
            raise BufferError("bfloat16 is not supported")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def register_hook(self, hook):
        self.hooks.append(hook)

    def backward(self, gradient):
        for hook in self.hooks:
            assert hook(Tensor(gradient, False)) is None


class Module:
    """A module with forward hooks, as PyTorch calls them."""

    def __init__(self, forward):
        self.forward, self.hooks = forward, []

    def register_forward_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def __call__(self, *inputs):
        output = self.forward(*inputs)
        for hook in self.hooks:
            assert hook(self, inputs, output) is None
        return output
