// Attention of single query rows over cached keys and values, rotary positions, and RMS norm.
//
// Keys and values lie in the buffers of the Python cache: (B, K, capacity, D), 32-bit floats or
// bfloat16. Scores, weights and sums are 32-bit floats whatever the cache keeps.
#pragma once

#include <cmath>
#include <type_traits>

#include "vectors.h"

namespace lean {

// y = x / rms(x) * weight; the sum of squares is added up in double, then rounded.
inline void rms_norm(const float* x, const float* weight, float eps, int64_t size, float* y) {
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < size; i++) squares += double(x[i]) * x[i];
    const float factor = 1.0f / std::sqrt(float(squares / double(size)) + eps);
#pragma omp simd
    for (int64_t i = 0; i < size; i++) y[i] = weight[i] * (x[i] * factor);
}

// The sum of every group of 32, for the weights that are stored with an offset.
inline void group_sums(const float* x, int64_t stride, float* sums) {
    for (int64_t g = 0; g < stride / 32; g++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < 32; i++) sum += x[g * 32 + i];
        sums[g] = sum;
    }
}

// cosines and sines (size / 2 each) of one position.
inline void rotary_angles(const float* frequencies, float scaling, int64_t position, int64_t size,
                          float* angles) {
    for (int64_t i = 0; i < size / 2; i++) {
        const float angle = float(position) * frequencies[i];
        angles[i] = std::cos(angle) * scaling;
        angles[size / 2 + i] = std::sin(angle) * scaling;
    }
}

// Rotate one head (size) in place: element i with element i + size / 2.
inline void rotate(float* head, const float* angles, int64_t size) {
    const int64_t half = size / 2;
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        const float a = head[i], b = head[half + i];
        head[i] = a * angles[i] - b * angles[half + i];
        head[half + i] = b * angles[i] + a * angles[half + i];
    }
}

inline void put(const float* from, int64_t size, float* to) {
    __builtin_memcpy(to, from, size_t(size) * sizeof(float));
}

inline void put(const float* from, int64_t size, uint16_t* to) {
    for (int64_t i = 0; i < size; i++) to[i] = bf16_of_float(from[i]);
}

inline float get(float value) { return value; }
inline float get(uint16_t value) { return float_of_bf16(value); }

inline Floats load_stored(const float* from) { return load<Floats>(from); }
inline Floats load_stored(const uint16_t* from) {
    return (Floats)(__builtin_convertvector(load<Shorts>(from), Words) << 16);
}

// Scores (length) to weights of attention that sum up to the number that is returned.
inline float exponentials(float* scores, int64_t length) {
    float largest = -INFINITY, total = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t t = 0; t < length; t++) largest = scores[t] > largest ? scores[t] : largest;
#pragma omp simd reduction(+ : total)
    for (int64_t t = 0; t < length; t++) {
        scores[t] = exp_negative(scores[t] - largest);
        total += scores[t];
    }
    return total;
}

// The keys and values of one head for one row of the batch: (length, size).
template <class Stored>
struct Past {
    const Stored *keys, *values;
    int64_t length, size;
};

// `heads` query heads (heads, size) that share the keys: every key is read and converted once.
template <int heads, int size, class Stored>
void attend(const float* query, const Past<Stored>& past, float scaling, float* scores,
            float* out) {
    constexpr int parts = size / LANES;
    for (int64_t t = 0; t < past.length; t++) {
        Floats key[parts];
        for (int i = 0; i < parts; i++) key[i] = load_stored(past.keys + t * size + i * LANES);
        for (int h = 0; h < heads; h++) {
            Floats dot = key[0] * load<Floats>(query + h * size);
            for (int i = 1; i < parts; i++)
                dot += key[i] * load<Floats>(query + h * size + i * LANES);
            scores[h * past.length + t] = sum_of_lanes(dot) * scaling;
        }
    }
    float factors[heads];
    for (int h = 0; h < heads; h++)
        factors[h] = 1.0f / exponentials(scores + h * past.length, past.length);
    Floats sums[heads][parts] = {};
    for (int64_t t = 0; t < past.length; t++) {
        for (int i = 0; i < parts; i++) {
            const Floats value = load_stored(past.values + t * size + i * LANES);
            for (int h = 0; h < heads; h++) sums[h][i] += scores[h * past.length + t] * value;
        }
    }
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < parts; i++)
            store(out + h * size + i * LANES, sums[h][i] * factors[h]);
}

// One query head of any size.
template <class Stored>
void attend_any(const float* query, const Past<Stored>& past, float scaling, float* scores,
                float* out) {
    const int64_t size = past.size;
    for (int64_t t = 0; t < past.length; t++) {
        float dot = 0;
        for (int64_t i = 0; i < size; i++) dot += query[i] * get(past.keys[t * size + i]);
        scores[t] = dot * scaling;
    }
    const float factor = 1.0f / exponentials(scores, past.length);
    for (int64_t i = 0; i < size; i++) out[i] = 0;
    for (int64_t t = 0; t < past.length; t++)
        for (int64_t i = 0; i < size; i++)
            out[i] += scores[t] * factor * get(past.values[t * size + i]);
}

constexpr int MAX_SHARING = 4;  // query heads that are attended to in one go

// Up to MAX_SHARING query heads (heads, size) of one group; scores has room for all of them.
template <class Stored>
void attend(int heads, const float* query, const Past<Stored>& past, float scaling, float* scores,
            float* out) {
    auto sized = [&](auto size) {
        constexpr int n = decltype(size)::value;
        switch (heads) {
            case 1: return attend<1, n>(query, past, scaling, scores, out);
            case 2: return attend<2, n>(query, past, scaling, scores, out);
            case 3: return attend<3, n>(query, past, scaling, scores, out);
            default: return attend<4, n>(query, past, scaling, scores, out);
        }
    };
    if (past.size == 64) return sized(std::integral_constant<int, 64>{});
    if (past.size == 128) return sized(std::integral_constant<int, 128>{});
    for (int h = 0; h < heads; h++)
        attend_any(query + h * past.size, past, scaling, scores, out + h * past.size);
}

}  // namespace lean
