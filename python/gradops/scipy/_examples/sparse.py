"""Examples of ``gradops.scipy.sparse`` and its ``linalg``."""

ROWS = """
see gradops.scipy.sparse.diags_array
csr_array((v, ([0, 1], [1, 0]))) @ np.array([3.0, 4.0]) by v = np.array([1.0, 2.0]) -> [[4. 0.]
     [0. 3.]]
csc_array((v, ([0, 1], [1, 0]))).power(2).sum() at v = np.array([1.0, 2.0]) -> [2. 4.]
coo_array((v, ([0, 1], [1, 0]))).multiply(3.0).sum() at v = np.array([1.0, 2.0]) -> [3. 3.]
csr_matrix((v, ([0, 1], [1, 0]))) * np.array([3.0, 4.0]) by v = np.array([1.0, 2.0]) -> [[4. 0.]
     [0. 3.]]
csc_matrix((v, ([0, 1], [1, 0]))).mean() at v = np.array([1.0, 2.0]) -> [0.25 0.25]
coo_matrix((v, ([0, 1], [1, 0]))).dot([3.0, 4.0]) by v = np.array([1.0, 2.0]) -> [[4. 0.]
     [0. 3.]]

see gradops.scipy.sparse.csr_array
sparray: (sparse.csr_array(([1.0, 2.0], ([0, 1], [1, 0]))) * s).sum() at s = 3.0 -> 3.0
spmatrix: (sparse.csr_matrix(([1.0, 2.0], ([0, 1], [1, 0]))) * s).sum() at s = 3.0 -> 3.0
find: sparse.find(s * sparse.eye_array(2))[2] by s = 3.0 -> [1. 1.]
also issparse isspmatrix

diags_array([v, [1.0]], offsets=[0, 1]) @ np.array([3.0, 4.0]) by v = np.array([1.0, 2.0]) -> [[3. 0.]
     [0. 4.]]
diags([v, [1.0]], [0, 1]) @ np.array([3.0, 4.0]) by v = np.array([1.0, 2.0]) -> [[3. 0.]
     [0. 4.]]
spdiags(v, [1], 2, 2).sum() at v = np.array([[1.0, 2.0]]) -> [[0. 1.]]
also eye_array eye identity

block_array([[s * sparse.eye_array(2)], [[[1.0, 2.0]]]]) @ np.array([3.0, 4.0]) by s = 2.0 -> [3. 4. 0.]
bmat([[s * sparse.eye(2)], [[[1.0, 2.0]]]]) @ np.array([3.0, 4.0]) by s = 2.0 -> [3. 4. 0.]
hstack([s * sparse.eye_array(1), sparse.eye_array(1)]) @ np.array([3.0, 4.0]) by s = 2.0 -> [3.]
vstack([s * sparse.eye_array(1), sparse.eye_array(1)]) @ np.array([3.0]) by s = 2.0 -> [3. 0.]
block_diag([s * sparse.eye_array(1), [[2.0]]]) @ np.array([3.0, 4.0]) by s = 2.0 -> [3. 0.]

kron(A, [[1.0, 2.0]]).sum() at A = np.array([[3.0, 4.0]]) -> [[3. 3.]]
kronsum(A, [[2.0]]).sum() at A = np.array([[3.0]]) -> [[1.]]
tril(A).sum() at A = np.array([[1.0, 2.0], [3.0, 4.0]]) -> [[1. 0.]
     [1. 1.]]
triu(A).sum() at A = np.array([[1.0, 2.0], [3.0, 4.0]]) -> [[1. 1.]
     [0. 1.]]
"""

LINALG = """
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

see gradops.scipy.linalg.eigh
eigsh(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), 1)[0] by s = 2.0 -> [0.276393]
svds(sparse.csc_array([[s, 1.0], [1.0, 3.0]]), 1)[1] by s = 2.0 -> [0.276393]

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
