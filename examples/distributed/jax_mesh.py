"""JAX on a mesh of devices: the data are sharded, by the shardings of a compiled step's arguments or by shard_map.

    python jax_mesh.py               # one device
    export XLA_FLAGS=--xla_force_host_platform_device_count=8
    python jax_mesh.py               # eight: the same parameters
    python jax_mesh.py shard_map     # again, with each device's part written out

The model is the same as in ddp.py.
"""

import sys

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import gradops
from gradops import ops

jax.config.update("jax_enable_x64", True)
mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(AxisType.Auto,))


@gradops.custom_gradient
def rounded(x):
    return ops.round(x * 4) / 4, lambda upstream: upstream


@gradops.checkpoint
def features(w, x):
    return rounded(jnp.tanh(x @ w["features"]))


def loss(w, x, label, domain):
    h = features(w, x)
    guess, origin = h @ w["label"], gradops.scaled_gradient(h, -0.5) @ w["domain"]
    other = gradops.stop_gradient(guess)
    return jnp.mean((guess - label) ** 2 + (origin - domain) ** 2 + 0.1 * (origin - other) ** 2)


def of_part(w, *data):
    """Return each device's result under shard_map: the mean over devices of their parts' gradients."""
    w = jax.tree.map(lambda a: jax.lax.pcast(a, "data", to="varying"), w)
    return jax.lax.pmean(jax.grad(loss)(w, *data), "data")


gradient = jax.grad(loss)
if "shard_map" in sys.argv:
    gradient = jax.shard_map(of_part, mesh=mesh, in_specs=(P(), P("data"), P("data"), P("data")), out_specs=P())


@jax.jit
def step(w, *data):
    return jax.tree.map(lambda a, g: a - 0.1 * g, w, gradient(w, *data))


keys = jax.random.split(jax.random.key(3), 6)
w = {"features": jax.random.normal(keys[0], (3, 4))}
w |= {name: jax.random.normal(key, (4, 1)) for name, key in zip(("label", "domain"), keys[1:3])}
data = [jax.random.normal(key, (16, columns)) for key, columns in zip(keys[3:], (3, 1, 1))]
w = jax.device_put(w, NamedSharding(mesh, P()))  # whole on each device
data = jax.device_put(data, NamedSharding(mesh, P("data")))  # sharded by rows
for _ in range(10):
    w = step(w, *data)
print(*jnp.concatenate([jnp.ravel(w[name]) for name in sorted(w)]).tolist())
