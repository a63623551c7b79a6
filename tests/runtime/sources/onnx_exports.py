"""Programs of torch and scikit-learn that exporters write as ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Export(NamedTuple):
    """A program, its arguments, and whether the first axis of the first argument is symbolic."""

    program: Any
    args: tuple[Any, ...]
    is_dynamic: bool = True


# -- torch


def torch_modules() -> dict[str, Export]:
    """Return modules of torch.nn and of the user, by name."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    randn = torch.randn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolutions = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(2))

        def forward(self, x: Any) -> Any:
            y = functional.relu(self.norms[0](self.convolutions[0](x)))
            return functional.relu(self.norms[1](self.convolutions[1](y)) + x)

    class Attention(nn.Module):
        def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
            return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any, padding: Any) -> Any:
            return self.attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    class RootMeanSquare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(randn(8))

        def forward(self, x: Any) -> Any:
            mean = x.float().pow(2).mean(-1, keepdim=True)
            return self.weight * (x * torch.rsqrt(mean + 1e-6)).to(x.dtype)

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(20, 8)
            self.places = nn.Parameter(randn(16, 8))

        def forward(self, tokens: Any) -> Any:
            return self.tokens(tokens) + self.places[: tokens.shape[1]]

    class Up(nn.Module):
        def forward(self, x: Any) -> Any:
            return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(8, 8).half(), nn.LayerNorm(8)

        def forward(self, x: Any) -> Any:
            return self.norm(self.linear(x.half()).float())

    class Quantized(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127) * 2

    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
            self.layer = nn.TransformerEncoderLayer(
                8, 2, 16, batch_first=True, norm_first=True, dropout=0
            )

        def forward(self, tokens: Any) -> Any:
            n = tokens.shape[1]
            mask = torch.triu(torch.full((n, n), float("-inf")), 1)
            return self.head(self.layer(self.tokens(tokens), src_mask=mask)).log_softmax(-1)

    class Indices(nn.Module):
        def forward(self, x: Any, columns: Any) -> Any:
            y = x.clone()
            y[:, 0] = 0
            y = y.masked_fill(x > 1, 3.5)
            return y[:, columns], torch.topk(x, 2)[0], x.argmax(1), torch.cumsum(x, 1)

    class Numbers(nn.Module):
        def forward(self, x: Any, n: Any) -> Any:
            wide = x.sum(0).to(torch.float64).mean()
            return x / n, wide, (x.abs() * 3).to(torch.int32) // 2, torch.einsum("ij,kj->ik", x, x)

    return {
        "perceptron": Export(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)),
            (randn(3, 8),),
        ),
        "convolution": Export(
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            (randn(2, 3, 8, 8),),
        ),
        "residual": Export(Residual(), (randn(2, 4, 5, 5),)),
        "lstm": Export(nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True), (randn(2, 7, 6),)),
        "gru": Export(nn.GRU(6, 5, batch_first=True), (randn(2, 7, 6),)),
        "transformer": Export(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (randn(2, 5, 8),)
        ),
        "attention": Export(
            Attention(),
            (*(randn(2, 2, n, 4) for n in (5, 6, 6)), torch.rand(2, 1, 5, 6) > 0.3),
            False,
        ),
        "padding": Export(
            Padded(),
            (randn(2, 4, 8), torch.tensor([[False] * 4, [False, False, True, True]])),
            False,
        ),
        "embedding": Export(Positions(), (torch.randint(0, 20, (2, 7)),)),
        "groups": Export(
            nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU(), nn.InstanceNorm2d(8)), (randn(2, 8, 5, 5),)
        ),
        "layers": Export(nn.Sequential(nn.LayerNorm(8), nn.GELU()), (randn(3, 4, 8),)),
        "root_mean_square": Export(RootMeanSquare(), (randn(3, 4, 8),)),
        "upsample": Export(Up(), (randn(2, 3, 5, 5),)),
        "transposed": Export(
            nn.Sequential(nn.ConvTranspose2d(4, 3, 3, stride=2), nn.Tanh()), (randn(2, 4, 5, 5),)
        ),
        "half": Export(Half(), (randn(3, 8),)),
        "quantized": Export(Quantized(), (randn(3, 8),)),
        "branch": Export(Branch(), (randn(3, 8),), False),
        "causal": Export(Causal(), (torch.randint(0, 20, (2, 6)),)),
        "indices": Export(Indices(), (randn(3, 6), torch.tensor([1, 4, 0])), False),
        "numbers": Export(Numbers(), (randn(4, 5), torch.tensor(3)), False),
    }


def torch_model(export: Export, path: Any, dynamo: bool) -> None:
    """Write the model of a module, by the exporter of torch.export or of TorchScript."""
    import inspect

    import torch

    module = export.program.eval()
    names = [f"arg{i}" for i in range(len(export.args))]
    if dynamo:
        first = next(iter(inspect.signature(module.forward).parameters))
        shapes = {first: {0: torch.export.Dim.DYNAMIC}} if export.is_dynamic else None
        program = torch.onnx.export(
            module,
            export.args,
            dynamo=True,
            verbose=False,
            dynamic_shapes=shapes,
            input_names=names,
        )
        program.save(path)
    else:
        axes = {names[0]: {0: "batch"}} if export.is_dynamic else None
        torch.onnx.export(
            module, export.args, path, dynamo=False, input_names=names, dynamic_axes=axes
        )


# -- scikit-learn


def pipelines() -> dict[str, Callable[[], Export]]:
    """Return functions that fit pipelines of scikit-learn, by name."""
    from sklearn import (
        cluster,
        decomposition,
        ensemble,
        impute,
        linear_model,
        naive_bayes,
        neighbors,
        neural_network,
        svm,
        tree,
    )
    from sklearn import preprocessing as scaling
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5)).astype(np.float32)
    labels = (x[:, 0] + x[:, 1] ** 2 > 0.5).astype(int)
    missing = x.copy()
    missing[::7, 2] = np.nan
    words = np.array([["a", "x"], ["b", "y"], ["a", "z"], ["c", "x"]] * 5, object)
    texts = np.array(["the cat sat", "a dog sat", "cats and dogs", "the end"] * 5)

    def fitted(*steps: Any, data: Any = x) -> Callable[[], Export]:
        target = labels[: len(data)]
        return lambda: Export(make_pipeline(*steps).fit(data, target), (data,))

    return {
        "scalers": fitted(scaling.StandardScaler(), scaling.MinMaxScaler(), scaling.Normalizer()),
        "components": fitted(decomposition.PCA(3), scaling.RobustScaler()),
        "singular": fitted(decomposition.TruncatedSVD(2)),
        "logistic": fitted(scaling.StandardScaler(), linear_model.LogisticRegression()),
        "linear": fitted(linear_model.LinearRegression()),
        "ridge": fitted(scaling.PolynomialFeatures(2), linear_model.Ridge()),
        "descent": fitted(scaling.MaxAbsScaler(), linear_model.SGDClassifier(loss="log_loss")),
        "vectors": fitted(svm.SVC()),
        "vector_regression": fitted(svm.SVR()),
        "neighbors": fitted(neighbors.KNeighborsClassifier(3)),
        "tree": fitted(tree.DecisionTreeClassifier(max_depth=4)),
        "forest": fitted(ensemble.RandomForestClassifier(5, max_depth=4)),
        "boosting": fitted(ensemble.GradientBoostingRegressor(n_estimators=5)),
        "clusters": fitted(cluster.KMeans(3, n_init=2)),
        "bayes": fitted(naive_bayes.GaussianNB()),
        "perceptron": fitted(neural_network.MLPClassifier((8,), max_iter=30)),
        "imputer": fitted(impute.SimpleImputer(), scaling.Binarizer(), data=missing),
        "one_hot": fitted(scaling.OneHotEncoder(handle_unknown="ignore"), data=words),
        "ordinal": fitted(scaling.OrdinalEncoder(), data=words),
        "texts": fitted(TfidfVectorizer(), linear_model.LogisticRegression(), data=texts),
        "process": fitted(GaussianProcessRegressor(), data=x[:15]),
        "isolation": fitted(ensemble.IsolationForest(n_estimators=5, random_state=0)),
    }


def sklearn_model(export: Export, has_maps: bool = False) -> bytes:
    """Return the model of a fitted pipeline; probabilities are an array unless it has maps."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    pipeline, (x,) = export.program, export.args
    text = StringTensorType([None, *x.shape[1:]])
    type_ = FloatTensorType([None, x.shape[1]]) if x.dtype == np.float32 else text
    is_classifier = hasattr(pipeline[-1], "predict_proba") and not has_maps
    options = {id(pipeline): {"zipmap": False}} if is_classifier else None
    opsets = {"": 18, "ai.onnx.ml": 3}
    model = convert_sklearn(pipeline, "m", [("x", type_)], options=options, target_opset=opsets)
    return model.SerializeToString()
