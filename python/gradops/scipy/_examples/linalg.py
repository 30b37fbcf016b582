"""Examples of ``gradops.scipy.linalg``."""

ROWS = """
see gradops.ops.linalg.slogdet
det(a) at a = np.array([[2.0, 1.0], [1.0, 3.0]]) -> [[ 3. -1.]
     [-1.  2.]]
inv(a)[0, 0] at a = np.array([[2.0, 1.0], [1.0, 3.0]]) -> [[-0.36  0.12]
     [ 0.12 -0.04]]
solve(a, [1.0, 2.0])[0] at a = np.array([[2.0, 1.0], [1.0, 3.0]]) -> [[-0.12 -0.36]
     [ 0.04  0.12]]
solve_triangular: linalg.solve_triangular([[s, 0.0], [1.0, 3.0]], [1.0, 2.0], lower=True)[1] at s = 2.0 -> 0.083333
norm(a) at a = np.array([[1.0, 2.0], [2.0, 4.0]]) -> [[0.2 0.4]
     [0.4 0.8]]

see gradops.scipy.optimize.nnls
lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], b)[0][0] at b = np.array([1.0, 2.0, 4.0]) -> [ 0.833333  0.333333 -0.166667]
pinv(a)[0, 0] at a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]) -> [[-0.555556  0.333333]
     [-0.555556  0.333333]
     [ 0.277778 -0.166667]]
pinvh: linalg.pinvh([[s, 1.0], [1.0, 3.0]])[0, 0] at s = 2.0 -> -0.36

cholesky: linalg.cholesky([[s, 1.0], [1.0, 3.0]], lower=True)[1, 1] at s = 2.0 -> 0.079057
cho_factor: linalg.cho_factor([[s, 1.0], [1.0, 3.0]], lower=True)[0][0, 0] at s = 2.0 -> 0.353553
cho_solve: linalg.cho_solve(linalg.cho_factor([[s, 1.0], [1.0, 3.0]]), [1.0, 2.0]) by s = 2.0 -> [-0.12  0.04]
cholesky_banded: linalg.cholesky_banded([[0.0, 1.0], [s, 3.0]])[1, 1] at s = 2.0 -> 0.079057
cho_solve_banded
    >>> factor = lambda s: linalg.cholesky_banded([[0.0, 1.0], [s, 3.0]])
    >>> print(gradops.jacobian(lambda s: linalg.cho_solve_banded((factor(s), False), [1.0, 2.0]))(2.0).round(6))
    [-0.12  0.04]

lu(a)[2] by a = np.array([[2.0]]) -> [[[[1.]]]]
lu_factor(a)[0][1, 1] at a = np.array([[2.0, 1.0], [1.0, 3.0]]) -> [[ 0.25 -0.5 ]
     [-0.5   1.  ]]
lu_solve: linalg.lu_solve(linalg.lu_factor([[s, 1.0], [1.0, 3.0]]), [1.0, 2.0]) by s = 2.0 -> [-0.12  0.04]

qr(a, mode="r")[0][0, 0] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[-0.6  0. ]
     [-0.8  0. ]]
rq(a, mode="r")[0, 1] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[-0.8  -0.6 ]
     [-0.12  0.16]]
qr_multiply(a, [1.0, 2.0])[0][0] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[ 0.064  0.   ]
     [-0.048  0.   ]]
polar(a)[1][0, 0] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[ 0.745356 -0.298142]
     [ 0.745356 -0.149071]]
svd(a)[1][0] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[0.447214 0.276393]
     [0.723607 0.447214]]
svdvals(a)[0] at a = np.array([[3.0, 1.0], [4.0, 3.0]]) -> [[0.447214 0.276393]
     [0.723607 0.447214]]
diagsvd(s, 2, 3)[1, 1] at s = np.array([3.0, 1.0]) -> [0. 1.]

see gradops.scipy.spatial.procrustes
orthogonal_procrustes([[1.0, 0.0], [0.0, 2.0]], b)[1] at b = np.array([[0.0, 1.0], [-1.0, 0.0]]) -> [[ 0.  1.]
     [-2.  0.]]
subspace_angles([[1.0], [0.0]], [[1.0], [s]]) by s = 0.5 -> [0.8]

see gradops.ops.linalg.eigh
eig: linalg.eig([[s, 1.0], [2.0, 1.0]])[0].real by s = 2.0 -> [0.666667 0.333333]
eigvals: linalg.eigvals([[s, 1.0], [2.0, 1.0]]).real by s = 2.0 -> [0.666667 0.333333]
eigh: linalg.eigh([[s, 1.0], [1.0, 3.0]])[0] by s = 2.0 -> [0.723607 0.276393]
eigvalsh: linalg.eigvalsh([[s, 1.0], [1.0, 3.0]]) by s = 2.0 -> [0.723607 0.276393]

eig_banded: linalg.eig_banded([[0.0, 1.0], [s, 3.0]])[0] by s = 2.0 -> [0.723607 0.276393]
eigvals_banded: linalg.eigvals_banded([[0.0, 1.0], [s, 3.0]]) by s = 2.0 -> [0.723607 0.276393]
eigh_tridiagonal(d, [1.0])[0] by d = np.array([2.0, 3.0]) -> [[0.723607 0.276393]
     [0.276393 0.723607]]
eigvalsh_tridiagonal(d, [1.0]) by d = np.array([2.0, 3.0]) -> [[0.723607 0.276393]
     [0.276393 0.723607]]

solve_sylvester([[a]], [[3.0]], [[2.0]])[0, 0] at a = 1.0 -> -0.125
solve_continuous_lyapunov([[a, 1.0], [0.0, -1.0]], -np.eye(2))[0, 0] at a = -2.0 -> 0.194444
solve_lyapunov([[a, 1.0], [0.0, -1.0]], -np.eye(2))[0, 0] at a = -2.0 -> 0.194444
solve_discrete_lyapunov([[a, 0.1], [0.0, 0.3]], np.eye(2))[0, 0] at a = 0.5 -> 1.816377
solve_continuous_are([[a]], [[1.0]], [[1.0]], [[2.0]])[0, 0] at a = 0.5 -> 3.154701
solve_discrete_are([[a]], [[1.0]], [[1.0]], [[2.0]])[0, 0] at a = 0.5 -> 0.825922

see gradops.scipy.sparse.linalg.expm_multiply
expm(t * np.array([[0.0, 1.0], [-1.0, 0.0]]))[0, 1] at t = 0.5 -> 0.877583
expm_frechet(a, np.eye(2), compute_expm=False)[0, 0] at a = np.array([[0.5, 0.0], [1.0, 0.0]]) -> [[1.648721 0.702557]
     [0.       0.      ]]
logm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 3.0 -> -0.072132
sqrtm([[s, 1.0], [0.0, 4.0]])[0, 1] at s = 9.0 -> -0.006667
signm([[s, 1.0], [0.0, -2.0]])[0, 1] at s = 3.0 -> -0.08
fractional_matrix_power([[4.0, 1.0], [0.0, 9.0]], t)[0, 1] at t = 0.5 -> 0.763817
funm([[s, 1.0], [0.0, 2.0]], lambda x: x**3)[0, 1] at s = 3.0 -> 8.0

sinm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 0.5 -> -0.394001
cosm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 0.5 -> -0.255374
tanm([[s, 1.0], [0.0, 1.0]])[0, 1] at s = 0.5 -> 1.447528
sinhm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 0.5 -> 0.628589
coshm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 0.5 -> 0.823523
tanhm([[s, 1.0], [0.0, 2.0]])[0, 1] at s = 0.5 -> -0.301227

toeplitz(c)[1, 0] at c = np.array([1.0, 2.0]) -> [0. 1.]
hankel(c)[1, 0] at c = np.array([1.0, 2.0]) -> [0. 1.]
circulant(c)[0, 1] at c = np.array([1.0, 2.0, 4.0]) -> [0. 0. 1.]
convolution_matrix(a, 2)[1] by a = np.array([1.0, 2.0]) -> [[0. 1.]
     [1. 0.]]
solve_toeplitz(c, [1.0, 2.0])[0] at c = np.array([3.0, 1.0]) -> [ 0.03125 -0.21875]
matmul_toeplitz(c, [1.0, 2.0])[0] at c = np.array([3.0, 1.0]) -> [1. 2.]
solve_circulant(c, [1.0, 2.0])[0] at c = np.array([3.0, 1.0]) -> [ 0.03125 -0.21875]

companion(a)[0] by a = np.array([2.0, 3.0, 4.0]) -> [[ 0.75 -0.5   0.  ]
     [ 1.    0.   -0.5 ]]
fiedler(a)[0] by a = np.array([2.0, 3.0, 5.0]) -> [[ 0.  0.  0.]
     [-1.  1.  0.]
     [-1.  0.  1.]]
fiedler_companion(a)[0] by a = np.array([2.0, 3.0, 4.0]) -> [[ 0.75 -0.5   0.  ]
     [ 1.    0.   -0.5 ]]
leslie([0.1, f], [0.5])[0] by f = 2.0 -> [0. 1.]
also hadamard helmert hilbert invhilbert pascal invpascal dft

block_diag([[s]], [[s**2]]) by s = 3.0 -> [[1. 0.]
     [0. 6.]]
khatri_rao([[1.0], [2.0]], b)[3, 0] at b = np.array([[3.0], [4.0]]) -> [[0.]
     [2.]]

solve_banded: linalg.solve_banded((0, 1), [[0.0, 1.0], [s, 3.0]], [1.0, 2.0]) by s = 2.0 -> [-0.083333  0.      ]
solveh_banded: linalg.solveh_banded([[0.0, 1.0], [s, 3.0]], [1.0, 2.0]) by s = 2.0 -> [-0.12  0.04]
also bandwidth

see gradops.scipy.linalg.eig
also schur rsf2csf hessenberg issymmetric ishermitian
"""
