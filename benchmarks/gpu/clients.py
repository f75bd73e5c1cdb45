"""Other people's Triton kernels, unchanged: a small transformer with Liger's and fla's, in training and in decoding.

    tprof record -o RUN -- python benchmarks/gpu/clients.py train      a digest of losses and weights is printed
    tprof record -o RUN -- python benchmarks/gpu/clients.py decode     the same of the tokens
    tprof record -o RUN -- python benchmarks/gpu/clients.py lengths    a public complaint: tuned again at new lengths

Needs `liger-kernel` and `flash-linear-attention` with `fla-core`. The last one repeats
https://github.com/fla-org/flash-linear-attention/issues/1147 (fla 0.5.2 and before): `causal_conv1d` has the number of
1024-token blocks in its autotune key and does not use it, so packed batches of changing length tune again and again.
"""

from __future__ import annotations

import argparse
import hashlib

import torch
from fla.modules.convolution import causal_conv1d
from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from liger_kernel.transformers import LigerCrossEntropyLoss
from torch import Tensor, nn

import tprof

WIDTH, HEADS, DEPTH, VOCABULARY = 256, 4, 2, 1024
HEAD = WIDTH // HEADS


class Block(nn.Module):
    """RMSNorm (Liger), short convolution and delta rule (fla), RMSNorm, SwiGLU (Liger)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(WIDTH))
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.beta = nn.Linear(WIDTH, HEADS)
        self.taps = nn.Parameter(0.3 * torch.randn(3 * WIDTH, 4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """X (batch, tokens, WIDTH); the state is the delta rule's."""
        batch, tokens, _ = x.shape
        normed = LigerRMSNormFunction.apply(x, self.first, 1e-6)
        mixed = causal_conv1d(self.mix(normed), self.taps, activation="silu")[0]
        q, k, v = mixed.view(batch, tokens, 3, HEADS, HEAD).unbind(2)
        rule = chunk_delta_rule if tokens > 1 else fused_recurrent_delta_rule
        mixed, state = rule(
            q.contiguous(), k.contiguous(), v.contiguous(), beta=self.beta(normed).sigmoid(),
            initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True,
        )  # fmt: skip
        x = x + self.out(mixed.reshape(batch, tokens, WIDTH))
        a, b = self.up(LigerRMSNormFunction.apply(x, self.second, 1e-6)).chunk(2, -1)
        return x + self.down(LigerSiLUMulFunction.apply(a.contiguous(), b.contiguous())), state


class Model(nn.Module):
    """Embedding, blocks, head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))

    def forward(self, tokens: Tensor, states: list[Tensor | None] | None = None) -> tuple[Tensor, list[Tensor]]:
        """Logits, and the state of each block."""
        x, after = self.embed(tokens), []
        for block, state in zip(self.blocks, states or [None] * DEPTH, strict=True):
            x, kept = block(x, state)
            after.append(kept)
        return self.head(x), after


def train(model: Model) -> Tensor:
    """Three steps; losses and a weight."""
    optimizer, loss_of = torch.optim.SGD(model.parameters(), lr=0.01), LigerCrossEntropyLoss()
    losses = []
    for step in range(3):
        tokens = torch.randint(VOCABULARY, (2, 257), device="cuda")
        with tprof.request(f"step {step}"):
            logits, _ = model(tokens[:, :-1])
            loss = loss_of(logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach().float())
            torch.cuda.synchronize()
    return torch.cat([torch.stack(losses), model.blocks[0].out.weight.detach().float().flatten()])


@torch.no_grad()
def decode(model: Model) -> Tensor:
    """A prompt, then a token at a time."""
    tokens = torch.randint(VOCABULARY, (1, 128), device="cuda")
    states: list[Tensor] | None = None
    said = []
    for step in range(9):
        with tprof.request("prefill" if step == 0 else "decode", id=str(step)):
            logits, states = model(tokens, states)
            tokens = logits[:, -1:].argmax(-1)
            torch.cuda.synchronize()
        said.append(tokens)
    return torch.cat(said, 1).float()


@torch.no_grad()
def lengths(_: Model) -> Tensor:
    """The convolution alone, on packed batches of changing length."""
    taps, outputs = torch.randn(WIDTH, 4, device="cuda", dtype=torch.bfloat16), []
    for tokens in (1000, 1500, 2500, 3500, 1000, 4500, 2500):
        x = torch.randn(1, tokens, WIDTH, device="cuda", dtype=torch.bfloat16)
        with tprof.request(f"packed {tokens}"):
            outputs.append(causal_conv1d(x, taps, activation="silu")[0].float().sum().view(1))
            torch.cuda.synchronize()
    return torch.cat(outputs)


def main() -> None:
    """Run one of the three and print a digest of what it computed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "decode", "lengths"))
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Model().to("cuda", torch.bfloat16)
    tprof.ready()
    result = {"train": train, "decode": decode, "lengths": lengths}[args.what](model)
    print("digest", hashlib.sha256(result.cpu().numpy().tobytes()).hexdigest()[:16])


if __name__ == "__main__":
    main()
