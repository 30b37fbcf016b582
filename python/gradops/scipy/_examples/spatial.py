"""Examples of ``gradops.scipy.spatial`` and its ``distance``."""

ROWS = """
see gradops.scipy.spatial.distance.minkowski
minkowski_distance([4.0, 4.0], [1.0, 0.0], p) at p = 2.0 -> -0.816773
minkowski_distance_p(x, [1.0, 0.0]) at x = np.array([4.0, 4.0]) -> [6. 8.]
distance_matrix(x, [[0.0, 0.0], [0.0, 4.0]])[0, 0] at x = np.array([[3.0, 4.0]]) -> [[0.6 0.8]]

see gradops.scipy.linalg.orthogonal_procrustes
geometric_slerp([1.0, 0.0], [0.0, 1.0], t) by t = 0.25 -> [-0.601118  1.451227]
procrustes([[0, 0], [1, 0], [0, 2]], x)[2] at x = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 2.0]]) -> [[-0.05   -0.0875]
     [-0.0125  0.1   ]
     [ 0.0625 -0.0125]]
"""

DISTANCE = """
see gradops.scipy.spatial.minkowski_distance
euclidean(u, [1.0, 0.0]) at u = np.array([4.0, 4.0]) -> [0.6 0.8]
sqeuclidean(u, [1.0, 0.0]) at u = np.array([4.0, 4.0]) -> [6. 8.]
seuclidean([4.0, 4.0], [1.0, 0.0], V) at V = np.array([1.0, 4.0]) -> [-1.248075 -0.138675]
mahalanobis(u, [1.0, 0.0], [[2.0, 0.5], [0.5, 1.0]]) at u = np.array([4.0, 4.0]) -> [1.179536 0.810931]
minkowski(u, [1.0, 0.0], p=3.0) at u = np.array([4.0, 4.0]) -> [0.444851 0.790847]
cityblock([4.0, 4.0], [1.0, 0.0], w) at w = np.array([1.0, 2.0]) -> [3. 4.]
chebyshev(u, [1.0, 0.0]) at u = np.array([4.0, 5.0]) -> [0. 1.]
canberra(u, [1.0, 2.0]) at u = np.array([4.0, 4.0]) -> [0.08     0.111111]
braycurtis(u, [1.0, 2.0]) at u = np.array([4.0, 4.0]) -> [0.049587 0.049587]

see gradops.scipy.stats.pearsonr
cosine(u, [1.0, 2.0, 2.0]) at u = np.array([4.0, 4.0, 1.0]) -> [ 0.040442 -0.017584 -0.091435]
correlation(u, [1.0, 2.0, 2.0]) at u = np.array([4.0, 4.0, 2.0]) -> [ 0.375 -0.375  0.   ]

see gradops.scipy.stats.entropy
jensenshannon(p, [0.5, 0.5]) at p = np.array([0.2, 0.8]) -> [-0.681689  0.170422]

hamming([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.055556  0.111111 -0.055556]
jaccard([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.055556  0.111111 -0.055556]
yule([1, 0, 1, 0], [1, 1, 0, 0], w) at w = np.array([1.0, 2.0, 3.0, 4.0]) -> [-0.48  0.24  0.16 -0.12]
dice([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.04  0.08 -0.04]
rogerstanimoto([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.0625  0.125  -0.0625]
russellrao([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.055556  0.111111 -0.055556]
sokalsneath([1, 0, 1], [1, 1, 1], w) at w = np.array([1.0, 2.0, 3.0]) -> [-0.0625  0.125  -0.0625]

see gradops.ops.cdist
cdist(x, [[0.0, 0.0], [0.0, 4.0]])[0, 0] at x = np.array([[3.0, 4.0]]) -> [[0.6 0.8]]
pdist(x) by x = np.array([[0.0, 0.0], [3.0, 4.0]]) -> [[[-0.6 -0.8]
      [ 0.6  0.8]]]
squareform(d)[1, 0] at d = np.array([1.0, 2.0, 3.0]) -> [1. 0. 0.]
directed_hausdorff(u, [[0.0, 0.0]])[0] at u = np.array([[3.0, 4.0], [1.0, 1.0]]) -> [[0.6 0.8]
     [0.  0. ]]
also num_obs_dm num_obs_y is_valid_dm is_valid_y
"""
