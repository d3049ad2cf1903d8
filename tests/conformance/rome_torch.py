"""ROME, r-ROME, p-ROME, MEMIT, EMMET and AlphaEdit in torch, around a model of Hugging Face: an implementation of its own, from the
formulas of the papers (arXiv 2202.05262 section 3.1, 2403.07175, 2210.07229, 2403.14236, 2410.02355) and the published hyper-parameters.
The conformance tests compare `weir rome edit` with it; the bench times it, so it does no more than it must: all rows in one padded
batch (causal attention never sees what is behind a row), no gradient of any weight, logits only where the loss looks.

    net = Net(model, encode, bos)
    found = Rome(net, prefixes, options, covariance).edit("r-rome", request, layer)

Names: k key [F], what the down projection reads; v value [C], what it writes; the edit is W + Lambda u^T with |u| = 1.
"""
import contextlib
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F

import reference


@dataclass
class Options:
    """The search's and MEMIT's numbers, by the names that edit.json has them under."""
    steps: int = 20
    rounds: int = 1
    rate: float = 0.5
    kl: float = 0.0625
    decay: float = 0.5
    clamp: float = 4.0
    enough: float = 0.05
    weight: float = 15000.0
    null_below: float = 0.02
    l2: float = 10.0


@dataclass
class Means:
    """Which of a method's quantities are means over the prefixes; the others are of the prompt alone."""
    u: bool   # the key that the direction is made from
    k: bool   # the key that shall give the new value
    o: bool   # the value that this key gives now
    v0: bool  # the value that delta is added to, and whose length the clamp and the decay are measured in
    groups: bool = False  # in the means the prompt alone counts as much as all prefixed ones


METHODS = {
    "r-rome": Means(True, True, True, True, groups=True),
    "rome": Means(True, False, False, False),
    "compat-r-rome": Means(True, True, True, False),
    "p-rome": Means(False, False, False, False),
}


@dataclass
class Found:
    k: torch.Tensor         # [F] the key of Means.k
    u: torch.Tensor         # [F]
    v0: torch.Tensor        # [C]
    delta: torch.Tensor     # [C]
    Lambda: torch.Tensor    # [C]
    trace: list = field(default_factory=list)  # of each pass: loss, nll, kl, decay, p, delta (its length)


class Net:
    """A model whose weights are constants. encode: text to (ids, [(begin, end)] in characters), without special tokens; bos: an id, or
    None."""

    def __init__(self, model, encode, bos=None):
        self.model, self.encode = model.eval().requires_grad_(False), encode
        self.bos = [] if bos is None else [bos]
        self.roles = reference.ROLES[model.config.model_type]
        self.base = getattr(model, self.roles["base"])
        self.blocks = getattr(self.base, self.roles["blocks"])
        self.cap = getattr(model.config, "final_logit_softcapping", None)
        self.dtype = next(model.parameters()).dtype
        self.updates = {}  # layer: dW [C, F] of the edits so far

    def down(self, layer):
        """The down projection itself: norms behind it (Gemma 2) read what is written here."""
        return getattr(getattr(self.blocks[layer], self.roles["mlp"]), self.roles["down"])

    def subject(self, text, end):
        """(ids with BOS, index of the token that holds the character before `end`)."""
        ids, spans = self.encode(text)
        at = max(i for i, (a, b) in enumerate(spans) if a < end <= b)
        return self.bos + list(ids), len(self.bos) + at

    @contextlib.contextmanager
    def hooked(self, module, change):
        """change(input, output): what the module's output becomes, or None."""
        def after(m, args, kw, out):
            first = out[0] if isinstance(out, tuple) else out
            new = change(args[0] if args else kw["hidden_states"], first)
            return None if new is None else (new, *out[1:]) if isinstance(out, tuple) else new
        handle = module.register_forward_hook(after, with_kwargs=True)
        try:
            yield
        finally:
            handle.remove()

    def hidden(self, ids):
        """What the head reads, [R, T, C], of the model with its updates."""
        with contextlib.ExitStack() as stack:
            for layer, dw in self.updates.items():
                stack.enter_context(self.hooked(self.down(layer), lambda x, y, dw=dw: y + x @ dw.T))
            if self.dtype == torch.float64:
                stack.enter_context(reference.in_float64_only())
            return self.base(input_ids=ids, use_cache=False).last_hidden_state

    def log_p(self, h):
        z = self.model.lm_head(h)
        if self.cap:
            z = self.cap * torch.tanh(z / self.cap)
        return F.log_softmax(z, -1)


class Rows:
    """The prompt behind each prefix, with the target, and the subject's "SUBJECT is a" as the last row."""

    def __init__(self, net, request, prefixes):
        before, after = request["prompt"].split("{}")
        subject = request["subject"]
        self.target, _ = net.encode(" " + request["target"].lstrip())
        rows = []
        for head in ["", *(p + ". " for p in prefixes)]:
            head += before
            rows.append(net.subject(head + subject + after, len(head + subject)))
        rows = [(ids + list(self.target[:-1]), at) for ids, at in rows]
        self.n = len(rows)
        rows.append(net.subject(subject + " is a", len(subject)))
        self.len = [len(ids) for ids, _ in rows]
        self.ids = torch.zeros(len(rows), max(self.len), dtype=torch.long)
        for row, (ids, _) in zip(self.ids, rows):
            row[:len(ids)] = torch.tensor(ids)
        self.at = torch.tensor([at for _, at in rows])
        self.all = torch.arange(len(rows))
        t = len(self.target)  # the last t positions of a row predict the target
        self.ask_row = self.all[:self.n].repeat_interleave(t)
        self.ask_at = torch.cat([torch.arange(n - t, n) for n in self.len[:self.n]])
        self.label = torch.tensor(self.target).repeat(self.n)


class Rome:
    """covariance: {layer: C [F, F]} in float64."""

    def __init__(self, net, prefixes, options, covariance):
        self.net, self.prefixes, self.o, self.C = net, prefixes, options, covariance

    # --- choices of the papers that a test alters, to see that the comparison notices
    def kl_at(self, rows):
        return rows.at[-1]

    def decay(self, delta, v0):
        return self.o.decay * delta.norm() / v0.norm()**2

    def begin_anew(self, adam):
        adam.state.clear()

    # --- the search
    def loss(self, rows, delta, v0, log_p0):
        """(loss, its parts, log p behind the subject) of a pass whose rows have delta added already."""
        h = self.net.hidden(rows.ids)
        asked = torch.cat([h[rows.ask_row, rows.ask_at], h[-1:, self.kl_at(rows)]])
        log_p = self.net.log_p(asked)
        nll = -log_p[:-1].gather(1, rows.label[:, None]).mean()
        log_p0 = log_p[-1].detach() if log_p0 is None else log_p0
        kl = self.o.kl * (log_p[-1].exp() * (log_p[-1] - log_p0)).sum()
        decay = self.decay(delta, v0())
        return nll + kl + decay, (nll, kl, decay), log_p0

    def search(self, rows, module, v0_of):
        """(delta, to be added to module's output at each row's subject, v0, trace, what module read and wrote there without it)."""
        width = self.net.model.config.hidden_size
        delta = torch.zeros(width, dtype=self.net.dtype, requires_grad=True)
        adam = torch.optim.Adam([delta], lr=self.o.rate)
        prompts, seen = (rows.all[:rows.n], rows.at[:rows.n]), []

        def add(x, y):
            if not seen:
                at = y[prompts].detach()
                seen.extend((v0_of(at), (x[prompts].detach(), at)))
            return y.index_put((rows.all, rows.at), delta.expand(len(rows.all), -1), accumulate=True)

        trace, log_p0 = [], None
        with self.net.hooked(module, add):
            for step in range(1, self.o.steps * self.o.rounds + 1):
                loss, parts, log_p0 = self.loss(rows, delta, lambda: seen[0], log_p0)
                nll, kl, decay = (float(x.detach()) for x in parts)
                trace.append(dict(loss=float(loss.detach()), nll=nll, kl=kl, decay=decay, p=float(np.exp(-nll)),
                                  delta=float(delta.detach().norm())))
                over = step % self.o.steps == 0
                if loss < self.o.enough or step == self.o.steps * self.o.rounds or (over and np.exp(-nll * len(rows.target)) >= 0.9):
                    break
                if over:
                    self.begin_anew(adam)
                adam.zero_grad()
                loss.backward()
                adam.step()
                with torch.no_grad():
                    delta *= min(1.0, float(self.o.clamp * seen[0].norm() / delta.norm()))
        return delta.detach(), seen[0], trace, seen[1]

    def seen(self, rows, module):
        """What module reads and writes at the subject, behind each prefix: [n, F] and [n, C]."""
        got, at = [], (rows.all[:rows.n], rows.at[:rows.n])
        with torch.no_grad(), self.net.hooked(module, lambda x, y: got.append((x[at], y[at]))):
            self.net.hidden(rows.ids)
        return got[0]

    def edit(self, method, request, layer, means=None):
        """A rank-one edit of one layer. means: in place of the method's own."""
        how = means or METHODS[method]
        rows = Rows(self.net, request, self.prefixes)
        mean = self.group_mean if how.groups else lambda x: x.mean(0)
        take = lambda x, over: mean(x) if over else x[0]
        delta, v0, trace, (k, o) = self.search(rows, self.net.down(layer), lambda x: take(x, how.v0))
        u = torch.linalg.solve(self.C[layer], take(k, how.u).double())
        u = (u / u.norm()).to(self.net.dtype)
        key = take(k, how.k)
        return Found(key, u, v0, delta, (v0 + delta - take(o, how.o)) / (key @ u), trace)

    # --- several facts, several layers
    def emmet(self, requests, layer):
        """({layer: dW [C, F]}, traces): ROME's keys and values, under one least-squares problem."""
        found = [self.edit("r-rome", r, layer) for r in requests]
        K, R = torch.stack([f.k for f in found], 1).double(), torch.stack([f.delta for f in found], 1).double()
        return {layer: self.solved(K, R, layer)}, [f.trace for f in found]

    def memit(self, requests, layers, solve=None):
        """({layer: dW [C, F]}, traces). The search changes what the last layer's block writes; each layer brings an equal share of what is
        still missing there. solve: AlphaEdit's equations in place of MEMIT's."""
        net, last = self.net, self.net.blocks[layers[-1]]
        rows = [Rows(net, r, self.prefixes) for r in requests]
        found = [self.search(r, last, lambda x: x[0]) for r in rows]
        z = torch.stack([v0 + delta for delta, v0, *_ in found])
        for i, layer in enumerate(layers):
            K = torch.stack([self.group_mean(self.seen(r, net.down(layer))[0]) for r in rows], 1).double()
            now = torch.stack([self.seen(r, last)[1][0] for r in rows])
            R = ((z - now) / (len(layers) - i)).T.double()
            net.updates[layer] = (solve or self.solved)(K, R, layer)
        out, net.updates = net.updates, {}
        return out, [trace for _, _, trace, _ in found]

    def alphaedit(self, requests, layers):
        return self.memit(requests, layers, self.solved_in_null_space)

    def group_mean(self, x):
        """MEMIT's mean: the prompt alone is a group of its own."""
        return (x[0] + x[1:].mean(0)) / 2 if len(x) > 1 else x[0]

    def solved(self, K, R, layer):
        """dW [C, F] of keys K [F, N] and residuals R [C, N]."""
        return (R @ torch.linalg.solve(self.o.weight * self.C[layer] + K @ K.T, K).T).to(self.net.dtype)

    def solved_in_null_space(self, K, R, layer):
        values, vectors = torch.linalg.eigh(self.C[layer])
        free = vectors[:, values < self.o.null_below]
        P = free @ free.T
        X = torch.linalg.solve(P @ K @ K.T + self.o.l2 * torch.eye(len(P), dtype=P.dtype), P @ K @ R.T)
        return X.T.to(self.net.dtype)


def covariance(path, ridge):
    """C of a weir-moments file: its sum over its count, and ridge times the mean of the diagonal."""
    import h5py
    with h5py.File(path) as f:
        packed, n, count = f["sum"][...], int(f.attrs["width"]), int(f.attrs["count"])
    c = np.zeros((n, n))
    c[np.triu_indices(n)] = packed / count
    c = c + np.triu(c, 1).T
    return torch.from_numpy(c + ridge * np.trace(c) / n * np.eye(n))


def encoder(tokenizer):
    """encode of Net, of a tokenizer of Hugging Face."""
    def encode(text):
        e = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        return e.ids, e.offsets
    return encode
