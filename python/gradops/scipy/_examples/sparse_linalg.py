"""Examples of ``gradops.scipy.sparse.linalg``."""

ROWS = """
see gradops.scipy.linalg.solve
spsolve(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), [1.0, 2.0]) by s = 2.0 -> [-0.12  0.04]
spsolve_triangular(sparse.csr_array([[s, 0.0], [1.0, 3.0]]), [1.0, 2.0]) by s = 2.0 -> [-0.25      0.083333]
splu(sparse.csc_array([[s, 1.0], [1.0, 3.0]])).solve(np.array([1.0, 2.0])) by s = 2.0 -> [-0.12  0.04]
SuperLU: linalg.splu(sparse.csc_array([[s, 1.0], [1.0, 3.0]])).solve(np.array([1.0, 2.0]))[0] at s = 2.0 -> -0.12
factorized(sparse.csc_array([[s, 1.0], [1.0, 3.0]]))(np.array([1.0, 2.0])) by s = 2.0 -> [-0.12  0.04]

logdet(sparse.csc_array([[s, 1.0], [1.0, 3.0]])) at s = 2.0 -> 0.6
selected_inverse(sparse.csc_array([[s, 1.0], [1.0, 3.0]]))[0, 0] at s = 2.0 -> -0.36
norm(sparse.csc_array([[s, 1.0], [1.0, 3.0]])) at s = 2.0 -> 0.516398
matrix_power(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), 2)[0, 0] at s = 2.0 -> 4.0
expm_multiply(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])) by s = 0.5 -> [8.406576 5.194897]
also spbandwidth is_sptriangular

see gradops.scipy.sparse.linalg.spsolve
cg(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
bicg(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
bicgstab(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
cgs(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
minres(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
gmres(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
lgmres(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
gcrotmk(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
qmr(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
tfqmr(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]), rtol=1e-12)[0] by s = 2.0 -> [-0.12  0.04]
"""
