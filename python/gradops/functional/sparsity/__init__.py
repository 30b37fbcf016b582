"""Sparse Jacobians and Hessians: their patterns, and their elements from few products.

- ``strategy``: how the elements of a Hessian are computed, one decision for all callers;
- ``matrices``: ``hessian(sparse=True)`` and ``jacobian(sparse=True)``;
- ``hessian``: :class:`gradops.functional.SparseHessian`, found once, with derivatives;
- ``laplace``: a joint likelihood's derivatives for Laplace's approximation, from one trace;
- ``patterns``, ``colors``: patterns and the products that find the elements, colourings;
- ``separable``: functions of affine maps (partial separability);
- ``traces``: what is recorded while a function is traced.
"""
