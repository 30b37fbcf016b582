"""Sparse Jacobians and Hessians: their patterns, and their elements from few products.

- ``strategy``: one decision for all callers on how the elements of a Hessian are computed;
- ``matrices``: ``hessian(sparse=True)`` and ``jacobian(sparse=True)``;
- ``hessian``: :class:`gradops.functional.SparseHessian`, an object with pattern and colours, and with derivatives;
- ``laplace``: the derivatives of a joint likelihood for Laplace's approximation, from one trace;
- ``patterns``, ``colors``: sparsity patterns and colourings, and the products that yield the elements;
- ``separable``: partial separability, for functions of affine maps;
- ``traces``: observers of a trace.
"""
