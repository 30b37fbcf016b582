"""Examples of ``gradops.scipy.sparse``."""

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
