/* Sums of distances to the nearest points, counted on a lattice.
 *
 * _lattice_sums.py explains the integers and has the same sums in NumPy. All numbers are integers,
 * so that the results are equal in any order. Here the nodes are divided into tiles: each of them
 * ends when none of its own nodes misses a neighbour, and visits only windows with points.
 *
 * Proof: doc/theory/sensitivity.md, "Distance-to-measure".
 */

#include "_kernel.h"
#include <stdint.h>
#include <string.h>

/* Nodes of a tile at most. Their numbers fit into the nearest cache. */
#define MAX_NODES 256
#define MAX_CAPS 32
/* Distances are split in halves, so that the product of a half and a number of points has 64 bits. */
#define LOW_BITS 20
#define LOW (((int64_t)1 << LOW_BITS) - 1)
#define MOST_NUMBERS (PY_SSIZE_T_MAX / 4096)

typedef struct {
    Size n_shells, n_rows, width, n_tiles, n_caps;
    /* One number for each window of a tile, by the cell of its first node. */
    const void *counts;
    const uint8_t *occupied;
    /* The cell of each offset for a tile at the origin, the end of each shell of equal distances, and
     * these distances; cells of the rows of a tile, and of the first node of each tile. */
    const int64_t *offsets, *ends, *levels, *rows, *tiles, *tops;
    int64_t target;
    int bits;
    int64_t *sums;
} Task;

/* The numbers of points that are still missing at the nodes of a tile, and the sums up to the latest
 * distance: in two halves, or of whole records and of fractions of them. */
typedef struct {
    int32_t narrow[MAX_NODES];
    int64_t wide[MAX_NODES], first[MAX_NODES], second[MAX_NODES];
} Tile;

/* Add the missing points times a distance, and return whether any is missing. */
FOR_EACH_PROCESSOR
static int add_narrow(Tile *tile, Size n, int64_t distance)
{
    uint32_t low = (uint32_t)(distance & LOW), high = (uint32_t)(distance >> LOW_BITS), any = 0;
    for (Size i = 0; i < n; i++) {
        uint32_t missing = tile->narrow[i] > 0 ? (uint32_t)tile->narrow[i] : 0;
        any |= missing;
        tile->first[i] += (int64_t)((uint64_t)missing * high);
        tile->second[i] += (int64_t)((uint64_t)missing * low);
    }
    return any != 0;
}

static int add_wide(Tile *tile, Size n, int64_t distance, int bits)
{
    int64_t any = 0, fraction = ((int64_t)1 << bits) - 1;
    for (Size i = 0; i < n; i++) {
        int64_t missing = tile->wide[i] > 0 ? tile->wide[i] : 0;
        any |= missing;
        tile->first[i] += (missing >> bits) * distance;
        tile->second[i] += (missing & fraction) * distance;
    }
    return any != 0;
}

FOR_EACH_PROCESSOR
static void visit_narrow(const Task *t, Tile *tile, Size cell)
{
    const int32_t *counts = (const int32_t *)t->counts + cell;
    Size width = t->width;
    for (Size r = 0; r < t->n_rows; r++) {
        const int32_t *restrict from = counts + t->rows[r];
        int32_t *restrict to = tile->narrow + r * width;
        for (Size i = 0; i < width; i++)
            to[i] -= from[i];
    }
}

static void visit_wide(const Task *t, Tile *tile, Size cell)
{
    const int64_t *counts = (const int64_t *)t->counts + cell;
    for (Size r = 0; r < t->n_rows; r++)
        for (Size i = 0; i < t->width; i++)
            tile->wide[r * t->width + i] -= counts[t->rows[r] + i];
}

static int added(const Task *t, Tile *tile, int64_t distance, int is_wide)
{
    Size n = t->n_rows * t->width;
    return is_wide ? add_wide(tile, n, distance, t->bits) : add_narrow(tile, n, distance);
}

/* Write the sums for a cap beyond the latest distance. Nothing else changes. */
static void capped(const Task *t, const Tile *tile, Size number, Size c, int64_t distance,
                   int is_wide)
{
    Size n = t->n_rows * t->width;
    int64_t *whole = t->sums + (2 * c * t->n_tiles + number) * n, *parts = whole + t->n_tiles * n;
    for (Size i = 0; i < n; i++) {
        int64_t missing = is_wide ? tile->wide[i] : tile->narrow[i];
        missing = missing > 0 ? missing : 0;
        if (is_wide) {
            whole[i] = tile->first[i] + (missing >> t->bits) * distance;
            parts[i] = tile->second[i] + (missing & (((int64_t)1 << t->bits) - 1)) * distance;
        } else {
            whole[i] = tile->first[i] * (LOW + 1) + tile->second[i] + missing * distance;
            parts[i] = 0;
        }
    }
}

static void sums_of_tile(const Task *t, Size number, int is_wide)
{
    Tile tile;
    Size c = t->n_caps, begin = 0, n = t->n_rows * t->width;
    int64_t latest = 0, base = t->tiles[number];
    for (Size i = 0; i < n; i++) {
        tile.narrow[i] = is_wide ? 0 : (int32_t)t->target;
        tile.wide[i] = t->target;
    }
    memset(tile.first, 0, sizeof tile.first);
    memset(tile.second, 0, sizeof tile.second);
    for (Size s = 0; s < t->n_shells; s++) {
        int64_t level = t->levels[s];
        Size end = (Size)t->ends[s];
        /* The caps are in descending order. */
        while (c > 0 && t->tops[c - 1] <= level) {
            c--;
            capped(t, &tile, number, c, t->tops[c] - latest, is_wide);
        }
        Size o = begin;
        begin = end;
        while (o < end && !t->occupied[t->offsets[o] + base])
            o++;
        if (o == end)
            continue;
        int any = added(t, &tile, level - latest, is_wide);
        latest = level;
        if (!any)
            break;
        for (; o < end; o++) {
            Size cell = (Size)(t->offsets[o] + base);
            if (!t->occupied[cell])
                continue;
            if (is_wide)
                visit_wide(t, &tile, cell);
            else
                visit_narrow(t, &tile, cell);
        }
    }
    while (c > 0) {
        c--;
        capped(t, &tile, number, c, t->tops[c] - latest, is_wide);
    }
}

static int64_t largest(const int64_t *v, Size n)
{
    int64_t most = INT64_MIN;
    for (Size i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

static int64_t smallest(const int64_t *v, Size n)
{
    int64_t least = INT64_MAX;
    for (Size i = 0; i < n; i++)
        least = v[i] < least ? v[i] : least;
    return least;
}

PyObject *lattice_sums(PyObject *self, PyObject *args)
{
    PyObject *counts, *occupied, *offsets, *ends, *levels, *rows, *tiles, *tops, *result = NULL;
    PyObject *sums;
    Task t = {0};
    Buffers all = {0}, more = {0};
    Size n_cells, n_offsets;
    int is_wide;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOnnnnnnnpLi", &counts, &occupied, &offsets, &ends, &levels,
                          &rows, &tiles, &tops, &sums, &n_cells, &n_offsets, &t.n_shells, &t.n_rows,
                          &t.width, &t.n_tiles, &t.n_caps, &is_wide, &t.target, &t.bits))
        return NULL;
    if (t.n_rows < 1 || t.width < 1 || t.n_rows > MAX_NODES || t.width > MAX_NODES / t.n_rows ||
        t.n_caps < 1 || t.n_caps > MAX_CAPS || t.n_tiles < 1 ||
        t.n_tiles > MOST_NUMBERS / MAX_NODES / MAX_CAPS || n_cells < 1 || n_cells > MOST_NUMBERS || n_offsets < 1 || n_offsets > MOST_NUMBERS ||
        t.n_shells < 1 || t.n_shells > n_offsets || t.target < 1 || t.bits < 0 || t.bits > 30 ||
        (!is_wide && (t.bits || t.target > INT32_MAX))) {
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit.");
        return NULL;
    }
    Size item = sizeof(int64_t), n = t.n_rows * t.width;
    t.counts = opened(&all, counts, 0, n_cells * (is_wide ? item : (Size)sizeof(int32_t)));
    if (t.counts)
        t.occupied = opened(&all, occupied, 0, n_cells);
    if (t.occupied)
        t.offsets = opened(&all, offsets, 0, n_offsets * item);
    if (t.offsets)
        t.ends = opened(&all, ends, 0, t.n_shells * item);
    if (t.ends)
        t.levels = opened(&all, levels, 0, t.n_shells * item);
    if (t.levels)
        t.rows = opened(&all, rows, 0, t.n_rows * item);
    if (t.rows)
        t.tiles = opened(&all, tiles, 0, t.n_tiles * item);
    if (t.tiles)
        t.tops = opened(&all, tops, 0, t.n_caps * item);
    if (t.tops)
        t.sums = opened(&more, sums, PyBUF_WRITABLE, 2 * t.n_caps * t.n_tiles * n * item);
    if (!t.sums)
        goto done;
    int64_t least[] = {smallest(t.offsets, n_offsets), smallest(t.tiles, t.n_tiles),
                       smallest(t.rows, t.n_rows), smallest(t.ends, t.n_shells)};
    int64_t most[] = {largest(t.offsets, n_offsets), largest(t.tiles, t.n_tiles),
                      largest(t.rows, t.n_rows), largest(t.ends, t.n_shells)};
    int fits = most[3] <= n_offsets;
    for (int i = 0; i < 4; i++)
        fits &= least[i] >= 0 && most[i] <= MOST_NUMBERS;
    if (!fits || most[0] + most[1] + most[2] + t.width > n_cells) {
        PyErr_SetString(PyExc_ValueError, "a cell is outside the lattice.");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Size i = 0; i < t.n_tiles; i++)
        sums_of_tile(&t, i, is_wide);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    released(&all);
    released(&more);
    return result;
}
