"""Beam search over a sequence model: the best candidates of all beams of a sentence are taken
from the flattened scores and split into a beam and a word.

https://github.com/mit-han-lab/lite-transformer/pull/32
"""
import torch

PAD, EOS = 0, 1


class Search:
    def __init__(self, vocab_size):
        self.pad, self.eos, self.vocab_size = PAD, EOS, vocab_size
        self.scores_buf = self.indices_buf = self.beams_buf = None

    def _init_buffers(self, t):
        if self.scores_buf is not None:
            return
        self.scores_buf = torch.empty(0, dtype=t.dtype, device=t.device)
        self.indices_buf = torch.empty(0, dtype=torch.long, device=t.device)
        self.beams_buf = torch.empty(0, dtype=torch.long, device=t.device)

    def step(self, step, lprobs, scores):
        raise NotImplementedError


class BeamSearch(Search):
    def step(self, step, lprobs, scores):
        self._init_buffers(lprobs)
        beam_size, vocab_size = lprobs.shape[1:]
        candidates = lprobs[:, :1] if step == 0 else lprobs + scores[:, :, step - 1, None]
        candidates = candidates.flatten(1)
        count = min(beam_size * 2, candidates.size(1) - 1)
        torch.topk(candidates, k=count, out=(self.scores_buf, self.indices_buf))
        torch.div(self.indices_buf, vocab_size, out=self.beams_buf)
        self.indices_buf.fmod_(vocab_size)
        return self.scores_buf, self.indices_buf, self.beams_buf


class BigramModel:
    def __init__(self, table):
        self.lprobs = torch.log_softmax(table, dim=-1)

    def __call__(self, tokens):
        return self.lprobs[tokens[..., -1]]


class SequenceGenerator:
    def __init__(self, model, vocab_size, beam_size=3, max_len=5):
        self.model, self.beam_size, self.max_len = model, beam_size, max_len
        self.search = BeamSearch(vocab_size)

    def generate(self, prefix):
        bsz, beam = prefix.size(0), self.beam_size
        tokens = prefix[:, None, None].expand(bsz, beam, 1).contiguous()
        scores = torch.zeros(bsz, beam, self.max_len)
        finished = [[] for _ in range(bsz)]
        for step in range(self.max_len):
            lprobs = self.model(tokens).clone()
            lprobs[:, :, self.search.pad] = -torch.inf
            cand_scores, cand_words, cand_beams = self.search.step(step, lprobs, scores)
            rows_tokens, rows_scores = [], []
            for b in range(bsz):
                alive = []
                for score, word, source in zip(cand_scores[b], cand_words[b], cand_beams[b]):
                    if word == self.search.eos:
                        finished[b].append(score / (step + 1))
                    elif len(alive) < beam:
                        alive.append((score, torch.cat([tokens[b, source], word[None]]), scores[b, source]))
                rows_tokens.append(torch.stack([t for _, t, _ in alive]))
                history = torch.stack([s for _, _, s in alive])
                history[:, step] = torch.stack([s for s, _, _ in alive])
                rows_scores.append(history)
            tokens, scores = torch.stack(rows_tokens), torch.stack(rows_scores)
        best = torch.stack([torch.stack(f).max() if f else torch.tensor(-torch.inf) for f in finished])
        return tokens, scores[:, :, -1], best


def main(table, prefix):
    model = BigramModel(table)
    return SequenceGenerator(model, table.shape[1]).generate(prefix)


def inputs():
    g = torch.Generator().manual_seed(12)
    return torch.randn(9, 9, generator=g) * 1.5, torch.tensor([3, 7, 5])


def fixed_main(*args):
    import os, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _fixed
    return _fixed.module(__file__).main(*args)
