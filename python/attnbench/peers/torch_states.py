"""State space variants as a careful PyTorch user writes them. A state space that is the same at every
position is a convolution with a filter that its poles give; one that follows the position is a scan of
two levels. Rows are [batch, heads, len, head_dim]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_chunks import states_before
from .torch_convolutions import convolved
from .torch_parts import always_causal, cut, joined

STRIDE = 64  # of the two factors that the powers of a pole are made of


def filter_of(log_decay: Tensor, length: int, read: Tensor) -> Tensor:
    """Σ_n read_n·e^(log_decay_n·t) for t = 0..length - 1: [.., states, dim] -> [.., length, dim]. With
    t = STRIDE·a + b the sum is a product of matrices, and no array holds states times positions."""
    far, near = places(length)
    poles, read = log_decay.mT.unsqueeze(-1), read.mT.unsqueeze(-1)  # [.., dim, states, 1]
    return product((read * (poles * far).exp()), (poles * near).exp(), length)


def turning_filter_of(log_pole: Tensor, length: int, read: Tensor) -> Tensor:
    """The real part of the same of complex poles. PyTorch's functions of real numbers are vectorised,
    and one product of real matrices is enough. A state may turn thousands of times: its angles are
    made in double."""
    far, near = places(length)
    poles, read = log_pole.mT.unsqueeze(-1), read.mT.unsqueeze(-1)
    real, imaginary = read.real.float(), read.imag.float()
    cosine, sine = powers(poles, far)
    first = torch.cat([real * cosine - imaginary * sine, -real * sine - imaginary * cosine], dim=-2)
    return product(first, torch.cat(powers(poles, near), dim=-2), length)


def powers(log_poles: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
    kept = (log_poles.real.float() * times).exp()
    angle = torch.remainder(log_poles.imag * times, 2 * math.pi).float()
    return kept * angle.cos(), kept * angle.sin()


def places(length: int) -> tuple[Tensor, Tensor]:
    return STRIDE * torch.arange(-(-length // STRIDE)), torch.arange(STRIDE)


def product(first: Tensor, second: Tensor, length: int) -> Tensor:
    """[.., dim, states, blocks] and [.., dim, states, STRIDE] -> [.., length, dim]."""
    return (first.mT @ second).flatten(-2)[..., :length].mT


def of_pairs(log_dt: Tensor, log_A_real: Tensor, A_imag: Tensor) -> tuple[Tensor, Tensor]:
    """Steps and poles in double: they are few."""
    pole = torch.complex(-log_A_real.double().exp(), A_imag.double())
    return log_dt.double().exp().unsqueeze(1), pole


def s4d(
    v: Tensor, log_dt: Tensor, log_A_real: Tensor, A_imag: Tensor, C_real: Tensor, C_imag: Tensor
) -> Tensor:  # fmt: skip
    """Zero-order hold; weights of one of each conjugate pair, [heads, pairs, head_dim]."""
    step, pole = of_pairs(log_dt, log_A_real, A_imag)
    read = 2 * torch.complex(C_real, C_imag) * torch.expm1(step * pole) / pole
    filter = turning_filter_of(step * pole, v.shape[2], read)
    return convolved(v, filter, None, True)


def h3(
    q: Tensor, k: Tensor, v: Tensor, shift_C: Tensor, shift_D: Tensor, log_dt: Tensor,
    log_A_real: Tensor, A_imag: Tensor, B_real: Tensor, B_imag: Tensor, C_real: Tensor,
    C_imag: Tensor, D: Tensor,
) -> Tensor:  # fmt: skip
    """The bilinear rule; both filters by Fourier transforms, as the authors' code."""
    step, pole = of_pairs(log_dt, log_A_real, A_imag)
    half = step * pole / 2
    log_pole = torch.log1p(half) - torch.log1p(-half)
    read = 2 * torch.complex(C_real, C_imag) * torch.complex(B_real, B_imag) * step / (1 - half)
    filter = turning_filter_of(log_pole, v.shape[2], read)
    shifted = convolved(k, shift_C[:, : k.shape[2]], shift_D.unsqueeze(1), True)
    return q * convolved(shifted * v, filter, D.unsqueeze(1), True)


def scan_chunk(length: int) -> int:
    """About √length, a power of two: as many steps within chunks as from chunk to chunk."""
    return 1 << ((length - 1).bit_length() // 2)


def scanned(steps: Iterable[tuple[Tensor, Tensor]], left: Tensor) -> Iterator[Tensor]:
    """The states h = decay⊙h + more at each time of a chunk, of all chunks at once [batch, heads, chunks,
    ..]: first what each chunk leaves behind, then, from the states before each chunk, the states.
    `left` is the product of a chunk's decays. No array holds states of all positions, but that training
    keeps them."""
    steps = iter(steps)
    kept = [next(steps)]
    state = kept[0][1]
    for decay, more in steps:
        kept.append((decay, more))
        state = torch.addcmul(more, decay, state)
    state = states_before(left, state)
    for decay, more in kept:
        state = torch.addcmul(more, decay, state)
        yield state


def mamba(v: Tensor, gate_dt: Tensor, gate_B: Tensor, gate_C: Tensor, A_log: Tensor) -> Tensor:
    """States [states, dim] of each head."""
    length, step = v.shape[2], F.softplus(gate_dt)
    chunk = scan_chunk(length)
    rate = -A_log.exp().unsqueeze(1)  # [heads, 1, states, dim]

    def decay(time: Tensor) -> Tensor:  # [batch, heads, chunks, dim] -> [.., states, dim]
        return (time.unsqueeze(3) * rate).exp()

    step, *others = (cut(x, chunk) for x in (step, step * v, gate_B, gate_C))
    values, write, read = (x.unbind(3) for x in others)  # at each time [batch, heads, chunks, width]
    steps = (
        (decay(dt), b.unsqueeze(4) * x.unsqueeze(3))
        for dt, x, b in zip(step.unbind(3), values, write)
    )
    states = scanned(steps, decay(step.sum(3)))
    out = [(c.unsqueeze(3) @ state).squeeze(3) for c, state in zip(read, states)]
    return joined(torch.stack(out, dim=3), length)


def lru(v: Tensor, poles: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """Complex states, h = a⊙h + γ⊙(x·B), in a scan of two levels; poles [3, width]: ν, θ, log γ."""
    x = v[:, 0]
    length, width = x.shape[1:]
    log_pole = torch.complex(-poles[0].exp(), poles[1].exp())
    real, imaginary = (x @ B).split(width, dim=-1)
    gain = poles[2].exp()
    rows = torch.complex(real * gain, imaginary * gain).unsqueeze(1)
    chunk = scan_chunk(length)
    rows = F.pad(torch.view_as_real(rows), (0, 0, 0, 0, 0, -length % chunk))
    rows = torch.view_as_complex(rows).unflatten(2, (-1, chunk))
    pole, states = log_pole.exp(), []  # chunk times [batch, 1, chunks, width]
    for row in rows.unbind(3):
        states.append(row + pole * states[-1] if states else row)
    left = (chunk * log_pole).exp().expand_as(states[-1])
    before = states_before(left, states[-1])
    powers = (log_pole * torch.arange(1, chunk + 1).unsqueeze(-1)).exp()  # [chunk, width]
    found = joined(torch.stack(states, dim=3) + powers * before.unsqueeze(3), length)
    return torch.cat([found.real, found.imag], dim=-1) @ C


def rg_lru(v: Tensor, gate_recurrence: Tensor, gate_input: Tensor, Lambda: Tensor) -> Tensor:
    """A state for each channel. The first position is written whole."""
    length = v.shape[2]
    chunk = scan_chunk(length)
    log_decay = -8 * F.softplus(Lambda).unsqueeze(1) * torch.sigmoid(gate_recurrence)
    gain = (-torch.expm1(2 * log_decay[:, :, 1:])).sqrt()
    written = F.pad(gain, (0, 0, 1, 0), value=1.0) * torch.sigmoid(gate_input) * v
    log_decay = cut(log_decay, chunk)
    steps = zip(log_decay.exp().unbind(3), cut(written, chunk).unbind(3))
    out = list(scanned(steps, log_decay.sum(3).exp()))
    return joined(torch.stack(out, dim=3), length)


VARIANTS = {made.__name__: always_causal(made) for made in (s4d, h3, mamba, lru, rg_lru)}
