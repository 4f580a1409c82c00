// A weight matrix in one of six forms, and its product with a few rows of activations.
//
// The weights are exactly those of the file: a group of 32 codes of one row with its scale, and its
// minimum if the form has one. Activations and sums are 32-bit floats, so that the only difference
// from a product with the dequantized matrix is the order of the additions.
//
// Sixteen rows are stored side by side: (tiles, groups, words, 16) of 32-bit words. One load brings
// the same weights of sixteen rows, each lane adds up its own output, and nothing is summed across.
#pragma once

#include <type_traits>

#include "vectors.h"

namespace lean {

enum Kind : int32_t { F32 = 0, BF16 = 1, INT8 = 2, INT8_FINE = 3, INT5 = 4, INT4 = 5 };

constexpr int words_of(Kind kind) {  // 32-bit words that hold 32 weights of a row
    return kind == F32 ? 32 : kind == BF16 ? 16 : kind == INT5 ? 5 : kind == INT4 ? 4 : 8;
}

struct Matrix {
    int32_t kind;
    int32_t half_scales;  // whether scales and minimums have 16 bits
    int64_t rows, columns;
    const uint32_t* words;  // (tiles, groups, words_of(kind), TILE)
    const void* scales;     // (tiles, groups, 1, or 2 if INT8_FINE, TILE)
    const void* minimums;   // the same, or null: then a code c stands for scale * (c - zero)
    const float* bias;      // (rows), or null
    float zero;
    int32_t padding;

    int64_t tiles() const { return (rows + TILE - 1) / TILE; }
    int64_t groups() const { return (columns + GROUP - 1) / GROUP; }
};

constexpr int MAX_ROWS = 8;  // of activations in one product

// A few rows of activations, and for each group of 32 of them their sum.
struct Rows {
    const float* values;  // (count, stride); zeros from the last column to a multiple of GROUP
    int64_t stride;
    const float* sums;  // (count, sum_stride)
    int64_t sum_stride;
};

inline Floats scales_at(const Matrix& m, const void* base, int64_t index) {
    if (m.half_scales) return load_halves((const uint16_t*)base + index);
    return load<Floats>((const float*)base + index);
}

// Call use(k, values) with the weights of column k, for words [first, last) of a group.
template <Kind kind, int first, int last, class Use>
__attribute__((always_inline)) inline void decode(const uint32_t* words, Use use) {
    Words high{};
    if constexpr (kind == INT5) high = load<Words>(words);
    constexpr int skip = kind == INT5 ? 1 : 0;
#pragma GCC unroll 32
    for (int w = first; w < last; w++) {
        const Words word = load<Words>(words + (w + skip) * TILE);
        if constexpr (kind == F32) {
            use(w, (Floats)word);
        } else if constexpr (kind == BF16) {
            use(2 * w, (Floats)(word << 16));
            use(2 * w + 1, (Floats)(word & 0xffff0000u));
        } else if constexpr (kind == INT8 || kind == INT8_FINE) {
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                use(4 * w + j, __builtin_convertvector((Ints)(word << (24 - 8 * j)) >> 24, Floats));
        } else {
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++) {  // ggml: the low halves of 16 bytes, then the high ones
                const int k = 16 * (j & 1) + 4 * w + j / 2;
                if constexpr (kind == INT5)
                    use(k, five_bits(word >> (4 * j), k < 4 ? high << (4 - k) : high >> (k - 4)));
                else
                    use(k, low_nibbles(word >> (4 * j)));
            }
        }
    }
}

// Ask for what is needed 32 groups later; the processor's own guess is a third slower.
template <Kind kind>
inline void prefetch_group(const Matrix& m, const uint32_t* words, int64_t scale) {
    constexpr int ahead = 32, subgroups = kind == INT8_FINE ? 2 : 1, line = 64;
    const char* at = (const char*)(words + ahead * words_of(kind) * TILE);
#pragma GCC unroll 32
    for (int i = 0; i < words_of(kind) * TILE * 4 / line; i++) __builtin_prefetch(at + i * line);
    if constexpr (kind == F32 || kind == BF16) return;
    const int64_t offset = (scale + ahead * subgroups * TILE) * (m.half_scales ? 2 : 4);
    __builtin_prefetch((const char*)m.scales + offset);
    if (m.minimums) __builtin_prefetch((const char*)m.minimums + offset);
}

// out (B, TILE) = x (B, columns) times sixteen rows of the matrix, without bias.
template <Kind kind, int B>
void tile_product(const Matrix& m, int64_t tile, const Rows& x, float* out) {
    constexpr bool plain = kind == F32 || kind == BF16;
    constexpr int subgroups = kind == INT8_FINE ? 2 : 1;
    constexpr int words = words_of(kind);
    constexpr int each = (kind == INT5 ? words - 1 : words) / subgroups;
    constexpr int chains = B <= 3 ? 4 : 2;  // sums per output: an addition need not await the last
    const int64_t groups = m.groups();
    const uint32_t* at = m.words + tile * groups * words * TILE;
    int64_t scale = tile * groups * subgroups * TILE;

    Floats total[PARTS][B] = {};
    for (int64_t g = 0; g < groups; g++, at += words * TILE, scale += subgroups * TILE) {
        const float* values = x.values + g * GROUP;
        prefetch_group<kind>(m, at, scale);
#pragma GCC unroll 4
        for (int part = 0; part < PARTS; part++) {
            auto run = [&](auto first, int sub) __attribute__((always_inline)) {
                Floats sum[chains][B] = {};
                int turn = 0;
                decode<kind, first.value, first.value + each>(
                    at + part * LANES, [&](int k, Floats weights) __attribute__((always_inline)) {
                        for (int b = 0; b < B; b++)
                            sum[turn % chains][b] += weights * values[b * x.stride + k];
                        turn++;
                    });
                for (int b = 0; b < B; b++) {
                    Floats s = sum[0][b];
                    for (int c = 1; c < chains; c++) s += sum[c][b];
                    if constexpr (plain) {
                        total[part][b] += s;
                    } else {
                        const int64_t index = scale + sub * TILE + part * LANES;
                        const Floats d = scales_at(m, m.scales, index);
                        const float all = x.sums[b * x.sum_stride + g];
                        if (m.minimums)
                            total[part][b] += d * s + scales_at(m, m.minimums, index) * all;
                        else
                            total[part][b] += d * (s - m.zero * all);
                    }
                }
            };
            run(std::integral_constant<int, 0>{}, 0);
            if constexpr (subgroups == 2) run(std::integral_constant<int, each>{}, 1);
        }
    }
    for (int b = 0; b < B; b++)
        for (int part = 0; part < PARTS; part++)
            store(out + b * TILE + part * LANES, total[part][b]);
}

template <Kind kind>
void tile_product(const Matrix& m, int64_t tile, const Rows& x, int count, float* out) {
    switch (count) {
        case 1: return tile_product<kind, 1>(m, tile, x, out);
        case 2: return tile_product<kind, 2>(m, tile, x, out);
        case 3: return tile_product<kind, 3>(m, tile, x, out);
        case 4: return tile_product<kind, 4>(m, tile, x, out);
        case 5: return tile_product<kind, 5>(m, tile, x, out);
        case 6: return tile_product<kind, 6>(m, tile, x, out);
        case 7: return tile_product<kind, 7>(m, tile, x, out);
        default: return tile_product<kind, 8>(m, tile, x, out);
    }
}

// out (count, TILE): sixteen outputs for each row of activations, with bias.
inline void tile_product(const Matrix& m, int64_t tile, const Rows& x, int count, float* out) {
    switch (m.kind) {
        case F32: tile_product<F32>(m, tile, x, count, out); break;
        case BF16: tile_product<BF16>(m, tile, x, count, out); break;
        case INT8: tile_product<INT8>(m, tile, x, count, out); break;
        case INT8_FINE: tile_product<INT8_FINE>(m, tile, x, count, out); break;
        case INT5: tile_product<INT5>(m, tile, x, count, out); break;
        default: tile_product<INT4>(m, tile, x, count, out); break;
    }
    if (m.bias)
        for (int b = 0; b < count; b++)
            for (int64_t r = 0; r < TILE && tile * TILE + r < m.rows; r++)
                out[b * TILE + r] += m.bias[tile * TILE + r];
}

// One row of the matrix, dequantized: out (columns).
template <Kind kind>
void row_values(const Matrix& m, int64_t row, float* out) {
    constexpr int subgroups = kind == INT8_FINE ? 2 : 1;
    constexpr int words = words_of(kind);
    constexpr int last = kind == INT5 ? words - 1 : words;
    const int64_t tile = row / TILE, lane = row % TILE, part = lane / LANES;
    for (int64_t g = 0; g < m.groups(); g++) {
        const int64_t group = tile * m.groups() + g;
        const uint32_t* at = m.words + group * words * TILE + part * LANES;
        decode<kind, 0, last>(at, [&](int k, Floats weights) {
            if (g * GROUP + k >= m.columns) return;
            float value = weights[lane % LANES];
            if constexpr (kind != F32 && kind != BF16) {
                const int64_t scale = (group * subgroups + k * subgroups / GROUP) * TILE;
                const int64_t index = scale + part * LANES;
                const float d = scales_at(m, m.scales, index)[lane % LANES];
                if (m.minimums)
                    value = d * value + scales_at(m, m.minimums, index)[lane % LANES];
                else
                    value = d * (value - m.zero);
            }
            out[g * GROUP + k] = value;
        });
    }
}

inline void row_values(const Matrix& m, int64_t row, float* out) {
    switch (m.kind) {
        case F32: return row_values<F32>(m, row, out);
        case BF16: return row_values<BF16>(m, row, out);
        case INT8: return row_values<INT8>(m, row, out);
        case INT8_FINE: return row_values<INT8_FINE>(m, row, out);
        case INT5: return row_values<INT5>(m, row, out);
        default: return row_values<INT4>(m, row, out);
    }
}

}  // namespace lean
