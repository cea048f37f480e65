/* Sums of distances to the nearest points as integers, at many places, also of points with weights;
 * and selection.
 *
 * _nearest_sums.py, which explains the integers, has the same sums in NumPy for the computers on
 * which this file was not compiled. The results are equal bit by bit, because every operation on
 * floating-point numbers is one of IEEE 754 in the same order, or is exact in any order.
 *
 * Proof: doc/theory/sensitivity.md, "Distance-to-measure".
 */

#include "_kernel.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Tiles of at most this many places for each axis are not divided. */
#define PLACES_OF_TILE 8
#define MAX_AXES 32
#define MAX_CAPS 32
/* Integers of up to 40 bits whose sum is exact in 53 bits, and that fit into the nearest cache. */
#define TERMS 1024
/* Distances of points with weights are split in halves of so many bits. The product of a half and a
 * weight of up to 22 bits, and TERMS of them, are exact in 53 bits. */
#define LOW_BITS 20
/* Relative rounding error of distances. It only decides which points are examined. */
#define ROUNDING 1e-9
/* A random sample of so many values tells where a rank is, within a few percent. */
#define SAMPLE 1024
#define MOST_NUMBERS (PY_SSIZE_T_MAX / 64 / MAX_AXES)

/* The next of a sequence of pseudorandom numbers below n, which only affects the time. */
static Size next_below(uint64_t *state, Size n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (Size)((*state >> 33) % (uint64_t)n);
}

/* Put the smallest r + 1 of n values first, and return the largest of them. */
static double kth_smallest(double *v, Size n, Size r)
{
    Size low = 0, high = n;
    uint64_t state = 1;
    while (high - low > 1) {
        /* Values in an order, such as those of a path, would make fixed places bad candidates. */
        double a = v[low + next_below(&state, high - low)];
        double b = v[low + next_below(&state, high - low)];
        double c = v[low + next_below(&state, high - low)];
        double most = a > b ? a : b, least = a > b ? b : a;
        double pivot = c < least ? least : (c < most ? c : most);
        Size less = low;
        for (Size i = low; i < high; i++) {
            double x = v[i];
            v[i] = v[less];
            v[less] = x;
            less += x < pivot;
        }
        if (r < less) {
            high = less;
            continue;
        }
        Size upto = less;
        for (Size i = less; i < high; i++) {
            double x = v[i];
            v[i] = v[upto];
            v[upto] = x;
            upto += x == pivot;
        }
        /* A pivot that does not equal itself is not a number. */
        if (r < upto || upto == less)
            return pivot;
        low = upto;
    }
    return v[r];
}

/* Collect the values below an interval, which is likely to contain the one of rank r, and those
 * inside. If it does not, all values are inside. Return the number of those below. */
static Size around_rank(const double *v, Size n, Size r, double low, double high, double *below,
                        double *inside, Size *n_inside)
{
    Size m = 0, f = 0;
    for (Size i = 0; i < n; i++) {
        double x = v[i];
        below[m] = x;
        m += x < low;
        inside[f] = x;
        f += (x >= low) & (x <= high);
    }
    if (m <= r && r < m + f) {
        *n_inside = f;
        return m;
    }
    memcpy(inside, v, n * sizeof *v);
    *n_inside = n;
    return 0;
}

/* Narrow an interval to one that is likely to contain the value of rank r, by a sample. */
static void narrow(const double *v, Size n, Size r, double *sample, double *low, double *high)
{
    if (n < 4 * SAMPLE)
        return;
    uint64_t state = 2;
    Size m = SAMPLE;
    for (Size i = 0; i < m; i++)
        sample[i] = v[next_below(&state, n)];
    double share = (double)(r + 1) / n;
    double middle = share * m, margin = 4 * sqrt(m * share * (1 - share)) + 2;
    if (middle + margin < m) {
        double x = kth_smallest(sample, m, (Size)(middle + margin));
        *high = x < *high ? x : *high;
    }
    if (middle - margin >= 0) {
        double x = kth_smallest(sample, m, (Size)(middle - margin));
        *low = x > *low ? x : *low;
    }
}

/* Overwrite the first k of n values with the k smallest. */
static void smallest_first(double *v, Size n, Size k, double *below, double *inside)
{
    double low = -INFINITY, high = INFINITY;
    Size n_inside;
    narrow(v, n, k - 1, inside, &low, &high);
    Size m = around_rank(v, n, k - 1, low, high, below, inside, &n_inside);
    kth_smallest(inside, n_inside, k - 1 - m);
    memcpy(v, below, m * sizeof *v);
    memcpy(v + m, inside, (k - m) * sizeof *v);
}

/* The places, the points as one array for each axis, and the k-th distance at the latest place.
 * Lengths are in units of the coordinates. */
typedef struct {
    Size n, d, k, n_places, n_caps, p;
    /* The longest distance that counts, a bound of rounding errors, and the square of a unit. */
    double reach, blur, unit;
    double cap, scale;
    const double *tops;
    double *points[MAX_AXES];
    const double *places;
    Size *order;
    double *squared, *below, *inside;
    int64_t *sums;
    double kth;
    const double *latest;
    /* Only for points with weights: the weights, those of the values below and inside, and the weight
     * of the nearest points that counts. */
    const double *weights;
    double *weights_below, *weights_inside, target;
} Task;

FOR_EACH_PROCESSOR
static void squared_distances(const Task *t, const double *place, Size begin, Size end)
{
    double *to = t->squared;
    for (Size start = begin; start < end; start += TERMS) {
        Size stop = end - start < TERMS ? end : start + TERMS;
        for (Size i = start; i < stop; i++) {
            double step = t->points[0][i] - place[0];
            to[i] = step * step;
        }
        for (Size a = 1; a < t->d; a++) {
            const double *from = t->points[a];
            double at = place[a];
            for (Size i = start; i < stop; i++) {
                double step = from[i] - at;
                to[i] += step * step;
            }
        }
    }
}

/* Adding 1.5 * 2^52 rounds numbers below 2^51 to integers, halves to even ones. */
static const double SHIFT = 6755399441055744.0;

/* Write the integers of squared distances, as FixedPointPower has them for p = 1 and 2. */
static inline void to_whole(const Task *t, const double *squared, Size n, double *whole)
{
    double cap = t->cap, scale = t->scale, unit = t->unit;
    for (Size i = 0; i < n; i++) {
        double x = sqrt(squared[i] * unit);
        whole[i] = x < cap ? x : cap;
    }
    if (t->p == 2)
        for (Size i = 0; i < n; i++) {
            double x = whole[i] / cap;
            whole[i] = x * x;
        }
    for (Size i = 0; i < n; i++)
        whole[i] = (whole[i] * scale + SHIFT) - SHIFT;
}

/* Add the integers of squared distances for each cap. */
FOR_EACH_PROCESSOR
static void add_whole(const Task *t, const double *squared, Size n, int64_t *totals)
{
    double whole[TERMS];
    for (Size start = 0; start < n; start += TERMS) {
        Size m = n - start < TERMS ? n - start : TERMS;
        to_whole(t, squared + start, m, whole);
        for (Size c = 0; c < t->n_caps; c++) {
            double top = t->tops[c], part[8] = {0}, sum = 0;
            Size i = 0;
            for (; i + 8 <= m; i += 8)
                for (int j = 0; j < 8; j++)
                    part[j] += whole[i + j] < top ? whole[i + j] : top;
            for (; i < m; i++)
                sum += whole[i] < top ? whole[i] : top;
            for (int j = 0; j < 8; j++)
                sum += part[j];
            totals[c] += (int64_t)sum;
        }
    }
}

/* Add the products of these integers and weights for each cap: of the upper halves, then of the
 * lower ones. */
FOR_EACH_PROCESSOR
static void add_weighted(const Task *t, const double *squared, const double *weights, Size n,
                         int64_t *totals)
{
    double whole[TERMS];
    const double half = 1 << LOW_BITS;
    for (Size start = 0; start < n; start += TERMS) {
        Size m = n - start < TERMS ? n - start : TERMS;
        const double *w = weights + start;
        to_whole(t, squared + start, m, whole);
        for (Size c = 0; c < t->n_caps; c++) {
            double top = t->tops[c], upper[4] = {0}, lower[4] = {0};
            for (Size i = 0; i < m; i++) {
                double x = whole[i] < top ? whole[i] : top;
                /* Rounded to the nearest, so that the lower half may be negative. */
                double high = (x / half + SHIFT) - SHIFT;
                upper[i & 3] += high * w[i];
                lower[i & 3] += (x - high * half) * w[i];
            }
            totals[2 * c] += (int64_t)upper[0] + (int64_t)upper[1] + (int64_t)upper[2] +
                             (int64_t)upper[3];
            totals[2 * c + 1] += (int64_t)lower[0] + (int64_t)lower[1] + (int64_t)lower[2] +
                                 (int64_t)lower[3];
        }
    }
}

static double distance(const Task *t, const double *a, const double *b)
{
    double sum = 0;
    for (Size i = 0; i < t->d; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Collect the points of [begin, end) around the k-th distance at a place, which differs from that
 * at another place by at most the distance of both; the first `begin` points are nearer. Return
 * the number of values below, and the k-th distance. */
static Size near_kth(Task *t, Size begin, Size end, double kth, double step, double *found)
{
    const double *v = t->squared + begin;
    Size n = end - begin, r = t->k - begin - 1, n_inside;
    double low = kth - step, high = kth + step;
    low = low > 0 ? low * low * (1 - ROUNDING) : -1;
    high = high * high * (1 + ROUNDING);
    narrow(v, n, r, t->inside, &low, &high);
    Size m = around_rank(v, n, r, low, high, t->below, t->inside, &n_inside);
    *found = sqrt(kth_smallest(t->inside, n_inside, r - m));
    return m;
}

/* Move points whose squared distance is at most the limit to the front; return where they end. */
static Size move_first(Task *t, Size begin, Size end, double limit)
{
    double *v = t->squared;
    Size next = begin;
    for (Size i = begin; i < end; i++) {
        double x = v[i];
        if (x > limit)
            continue;
        if (i > next) {
            v[i] = v[next];
            v[next] = x;
            for (Size a = 0; a < t->d; a++) {
                double *p = t->points[a], moved = p[i];
                p[i] = p[next];
                p[next] = moved;
            }
        }
        next++;
    }
    return next;
}

/* The sums at a place to which the points before `sure` are near, and those before `end` may be. */
static void sums_at_place(Task *t, Size number, Size sure, Size end)
{
    const double *place = t->places + number * t->d;
    Size need = t->k - sure, rest = end - sure, beyond = 0;
    int64_t totals[MAX_CAPS];
    squared_distances(t, place, 0, end);
    if (need >= rest) {
        /* All other points are beyond the cap. */
        beyond = need - rest;
    } else {
        double *v = t->squared + sure, step = distance(t, place, t->latest);
        Size m = near_kth(t, sure, end, t->kth, step * (1 + ROUNDING) + t->blur, &t->kth);
        t->latest = place;
        memcpy(v, t->below, m * sizeof *v);
        memcpy(v + m, t->inside, (need - m) * sizeof *v);
        end = t->k;
    }
    for (Size c = 0; c < t->n_caps; c++)
        totals[c] = (int64_t)beyond * (int64_t)t->tops[c];
    add_whole(t, t->squared, end, totals);
    for (Size c = 0; c < t->n_caps; c++)
        t->sums[c * t->n_places + number] = totals[c];
}

/* The sums at the places order[low:high], which are divided until they are few. `kth` is the k-th
 * distance at the place `from`. Points change their order only within [sure, end). */
static void sums_in_tile(Task *t, Size low, Size high, Size sure, Size end, double kth,
                         const double *from)
{
    double origin[MAX_AXES];
    memcpy(origin, from, t->d * sizeof *origin);
    for (;;) {
        double centre[MAX_AXES], least[MAX_AXES], most[MAX_AXES], radius = 0;
        Size longest = 0;
        for (Size a = 0; a < t->d; a++) {
            least[a] = INFINITY;
            most[a] = -INFINITY;
        }
        for (Size i = low; i < high; i++) {
            const double *place = t->places + t->order[i] * t->d;
            for (Size a = 0; a < t->d; a++) {
                least[a] = place[a] < least[a] ? place[a] : least[a];
                most[a] = place[a] > most[a] ? place[a] : most[a];
            }
        }
        for (Size a = 0; a < t->d; a++) {
            /* The sum of two large numbers would overflow. */
            centre[a] = least[a] / 2 + most[a] / 2;
            radius += (most[a] - least[a]) * (most[a] - least[a]) / 4;
            if (most[a] - least[a] > most[longest] - least[longest])
                longest = a;
        }
        radius = sqrt(radius);
        double inner = 0, outer = t->reach + radius;
        squared_distances(t, centre, sure, end);
        if (t->k <= end) {
            near_kth(t, sure, end, kth, distance(t, centre, origin) * (1 + ROUNDING) + t->blur, &kth);
            memcpy(origin, centre, t->d * sizeof *origin);
            inner = kth - 2 * radius;
            if (kth + 2 * radius < outer)
                outer = kth + 2 * radius;
        }
        outer = outer * (1 + ROUNDING) + t->blur;
        inner = inner * (1 - ROUNDING) - t->blur;
        /* A place may coincide with points, where both limits are zero: the outer one is included, and
         * points at the inner one may be as far away as the k-th. */
        end = move_first(t, sure, end, outer * outer);
        if (inner > 0) {
            Size near = move_first(t, sure, end, inner * inner * (1 - ROUNDING));
            /* Fewer than k points are nearer than the k-th, unless a square overflows. */
            sure = near < t->k ? near : sure;
        }
        Size cut = low;
        if (high - low > PLACES_OF_TILE * t->d)
            for (Size i = low; i < high; i++)
                if (t->places[t->order[i] * t->d + longest] < centre[longest]) {
                    Size moved = t->order[i];
                    t->order[i] = t->order[cut];
                    t->order[cut++] = moved;
                }
        /* All places may coincide. */
        if (cut == low || cut == high)
            break;
        /* The smaller part first, so that the depth is at most the logarithm of the places. */
        if (cut - low < high - cut) {
            sums_in_tile(t, low, cut, sure, end, kth, origin);
            low = cut;
        } else {
            sums_in_tile(t, cut, high, sure, end, kth, origin);
            high = cut;
        }
    }
    for (Size i = low; i < high; i++)
        sums_at_place(t, t->order[i], sure, end);
}

static inline void swap_pairs(double *v, double *w, Size i, Size j)
{
    double x = v[i], y = w[i];
    v[i] = v[j];
    w[i] = w[j];
    v[j] = x;
    w[j] = y;
}

/* Put the pairs with the smallest values first, as many as have a total weight below the target, but
 * for the last value. Return the last value, how many pairs are first, and their weight. The weight
 * of all pairs is at least the target. */
static double weighted_quantile(double *v, double *w, Size n, double target, Size *n_first,
                                double *weight)
{
    Size low = 0, high = n;
    double before = 0, pivot = INFINITY;
    uint64_t state = 1;
    for (;;) {
        pivot = v[low + next_below(&state, high - low)];
        Size less = low, upto;
        double lighter = before, equal = 0;
        for (Size i = low; i < high; i++)
            if (v[i] < pivot) {
                lighter += w[i];
                swap_pairs(v, w, i, less++);
            }
        if (lighter >= target) {
            high = less;
            continue;
        }
        upto = less;
        for (Size i = less; i < high; i++)
            if (v[i] == pivot) {
                equal += w[i];
                swap_pairs(v, w, i, upto++);
            }
        /* A pivot that does not equal itself is not a number. */
        if (lighter + equal >= target || upto == less || upto == high) {
            *n_first = less;
            *weight = lighter;
            return pivot;
        }
        before = lighter + equal;
        low = upto;
    }
}

/* Collect the pairs below an interval and those inside, without branches. Return the number of those
 * below, and add up both weights. */
FOR_EACH_PROCESSOR
static Size pairs_around(const Task *t, double low, double high, Size *n_inside, double *below,
                         double *inside)
{
    Size m = 0, f = 0;
    double first = 0, second = 0;
    for (Size i = 0; i < t->n; i++) {
        double x = t->squared[i], w = t->weights[i];
        int is_below = x < low, is_inside = (x >= low) & (x <= high);
        t->below[m] = x;
        t->weights_below[m] = w;
        m += is_below;
        first += is_below ? w : 0;
        t->inside[f] = x;
        t->weights_inside[f] = w;
        f += is_inside;
        second += is_inside ? w : 0;
    }
    *n_inside = f;
    *below = first;
    *inside = second;
    return m;
}

/* The weighted sums at a place of the nearest points whose total weight is the target. */
static void weighted_sums_at_place(Task *t, Size number)
{
    const double *place = t->places + number * t->d;
    double step = distance(t, place, t->latest) * (1 + ROUNDING);
    double low = t->kth - step, high = t->kth + step, below, inside, weight;
    int64_t totals[2 * MAX_CAPS] = {0};
    Size n_inside, n_first;
    squared_distances(t, place, 0, t->n);
    low = low > 0 ? low * low * (1 - ROUNDING) : -1;
    high = high * high * (1 + ROUNDING);
    Size m = pairs_around(t, low, high, &n_inside, &below, &inside);
    if (!(below < t->target && t->target <= below + inside))
        m = pairs_around(t, -1, INFINITY, &n_inside, &below, &inside);
    double last = weighted_quantile(t->inside, t->weights_inside, n_inside, t->target - below,
                                    &n_first, &weight);
    double rest = t->target - below - weight;
    t->kth = sqrt(last);
    t->latest = place;
    add_weighted(t, t->below, t->weights_below, m, totals);
    add_weighted(t, t->inside, t->weights_inside, n_first, totals);
    /* The rest may be heavier than 22 bits where points coincide. */
    while (rest > 0) {
        double part = rest < 4194304.0 ? rest : 4194304.0;
        add_weighted(t, &last, &part, 1, totals);
        rest -= part;
    }
    for (Size c = 0; c < 2 * t->n_caps; c++)
        t->sums[c * t->n_places + number] = totals[c];
}

static PyObject *py_sums_at_places(PyObject *self, PyObject *args)
{
    PyObject *points, *places, *tops, *sums, *result = NULL;
    Task t = {0};
    double *work = NULL;
    Buffers all = {0};
    if (!PyArg_ParseTuple(args, "OOOOnnnnnndddd", &points, &places, &tops, &sums, &t.n, &t.d,
                          &t.n_places, &t.n_caps, &t.k, &t.p, &t.cap, &t.scale, &t.unit, &t.blur))
        return NULL;
    if (t.d < 1 || t.d > MAX_AXES || t.n_caps < 1 || t.n_caps > MAX_CAPS || t.k < 1 || t.k > t.n ||
        t.n > MOST_NUMBERS || t.n_places < 1 || t.n_places > MOST_NUMBERS) {
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit.");
        return NULL;
    }
    double *columns = opened(&all, points, PyBUF_WRITABLE, t.n * t.d * (Size)sizeof *columns);
    if (columns)
        t.places = opened(&all, places, 0, t.n_places * t.d * (Size)sizeof *t.places);
    if (t.places)
        t.tops = opened(&all, tops, 0, t.n_caps * (Size)sizeof *t.tops);
    if (t.tops)
        t.sums = opened(&all, sums, PyBUF_WRITABLE,
                        t.n_caps * t.n_places * (Size)sizeof *t.sums);
    if (!t.sums)
        goto done;
    work = PyMem_Malloc(3 * t.n * sizeof *work);
    t.order = PyMem_Malloc(t.n_places * sizeof *t.order);
    if (!work || !t.order) {
        PyErr_NoMemory();
        goto done;
    }
    t.squared = work;
    t.below = work + t.n;
    t.inside = work + 2 * t.n;
    for (Size a = 0; a < t.d; a++)
        t.points[a] = columns + a * t.n;
    for (Size i = 0; i < t.n_places; i++)
        t.order[i] = i;
    t.reach = t.cap / sqrt(t.unit);
    /* Nothing is known about the first distance. */
    t.kth = INFINITY;
    t.latest = t.places;
    Py_BEGIN_ALLOW_THREADS
    sums_in_tile(&t, 0, t.n_places, 0, t.n, t.kth, t.latest);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    PyMem_Free(work);
    PyMem_Free(t.order);
    released(&all);
    return result;
}

static PyObject *py_weighted_sums_at_places(PyObject *self, PyObject *args)
{
    PyObject *points, *weights, *places, *tops, *sums, *result = NULL;
    Task t = {0};
    double *work = NULL;
    Buffers all = {0};
    if (!PyArg_ParseTuple(args, "OOOOOnnnnndddd", &points, &weights, &places, &tops, &sums, &t.n,
                          &t.d, &t.n_places, &t.n_caps, &t.p, &t.target, &t.cap, &t.scale,
                          &t.unit))
        return NULL;
    if (t.d < 1 || t.d > MAX_AXES || t.n_caps < 1 || t.n_caps > MAX_CAPS || t.n < 1 ||
        t.n > MOST_NUMBERS || t.n_places < 1 || t.n_places > MOST_NUMBERS) {
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit.");
        return NULL;
    }
    double *columns = opened(&all, points, 0, t.n * t.d * (Size)sizeof *columns);
    if (columns)
        t.weights = opened(&all, weights, 0, t.n * (Size)sizeof *t.weights);
    if (t.weights)
        t.places = opened(&all, places, 0, t.n_places * t.d * (Size)sizeof *t.places);
    if (t.places)
        t.tops = opened(&all, tops, 0, t.n_caps * (Size)sizeof *t.tops);
    if (t.tops)
        t.sums = opened(&all, sums, PyBUF_WRITABLE,
                        2 * t.n_caps * t.n_places * (Size)sizeof *t.sums);
    if (!t.sums)
        goto done;
    double total = 0;
    for (Size i = 0; i < t.n; i++)
        total += t.weights[i];
    if (!(t.target > 0 && t.target <= total)) {
        PyErr_SetString(PyExc_ValueError, "the weights do not reach the target.");
        goto done;
    }
    work = PyMem_Malloc(5 * t.n * sizeof *work);
    if (!work) {
        PyErr_NoMemory();
        goto done;
    }
    t.squared = work;
    t.below = work + t.n;
    t.inside = work + 2 * t.n;
    t.weights_below = work + 3 * t.n;
    t.weights_inside = work + 4 * t.n;
    for (Size a = 0; a < t.d; a++)
        t.points[a] = columns + a * t.n;
    t.kth = INFINITY;
    t.latest = t.places;
    Py_BEGIN_ALLOW_THREADS
    for (Size i = 0; i < t.n_places; i++)
        weighted_sums_at_place(&t, i);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    PyMem_Free(work);
    released(&all);
    return result;
}

static PyObject *py_smallest_first(PyObject *self, PyObject *args)
{
    PyObject *rows, *result = NULL;
    Size n_rows, n, k;
    double *work = NULL;
    Buffers all = {0};
    if (!PyArg_ParseTuple(args, "Onnn", &rows, &n_rows, &n, &k))
        return NULL;
    if (n_rows < 0 || k < 1 || k > n || n > PY_SSIZE_T_MAX / 16 / (n_rows + 1)) {
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not fit.");
        return NULL;
    }
    double *v = opened(&all, rows, PyBUF_WRITABLE, n_rows * n * (Size)sizeof *v);
    if (!v)
        goto done;
    work = PyMem_Malloc(2 * n * sizeof *work);
    if (!work) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Size i = 0; i < n_rows; i++)
        smallest_first(v + i * n, n, k, work, work + n);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    PyMem_Free(work);
    released(&all);
    return result;
}

static PyMethodDef methods[] = {
    {"sums_at_places", py_sums_at_places, METH_VARARGS,
     "sums_at_places(points, places, tops, sums, n, d, n_places, n_caps, k, p, cap, scale, unit, "
     "blur)\n\nWrite the sums of the integers of the k nearest points at all places, for each cap.\n\n"
     "The points, of shape (d, n), change their order. The square of a step of coordinates is\n"
     "`unit`."},
    {"weighted_sums_at_places", py_weighted_sums_at_places, METH_VARARGS,
     "weighted_sums_at_places(points, weights, places, tops, sums, n, d, n_places, n_caps, p, target, "
     "cap, scale, unit)\n\nWrite the sums of the integers of the nearest points, times their weights up "
     "to the target,\nat all places, for each cap: of the upper halves of the integers, then of the lower "
     "ones."},
    {"smallest_first", py_smallest_first, METH_VARARGS,
     "smallest_first(rows, n_rows, n, k)\n\n"
     "Overwrite the first k values of each row with its k smallest."},
    {"lattice_sums", lattice_sums, METH_VARARGS,
     "lattice_sums(counts, occupied, offsets, ends, levels, rows, tiles, tops, sums, n_cells, "
     "n_offsets, n_shells, n_rows, width, n_tiles, n_caps, is_wide, target, bits)\n\n"
     "Write the sums of the integers of the nearest points, counted on a lattice, at the nodes of "
     "tiles."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_nearest_kernel",
    "Sums of distances to the nearest points, compiled.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nearest_kernel(void)
{
    return PyModuleDef_Init(&module);
}
