// Attention of single query rows over cached keys and values, rotary positions, and RMS norm.
//
// Keys and values lie in the buffers of the Python cache: (B, K, capacity, D), 32-bit floats or
// bfloat16. Scores, weights and sums are 32-bit floats whatever the cache keeps.
#pragma once

#include <cmath>
#include <vector>

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

// One query head over `length` positions of its key and value head; `fixed` is D, or 0 if odd.
template <int fixed, class Stored>
void attend(const float* query, const Stored* keys, const Stored* values, int64_t length,
            int64_t dimension, float scaling, float* scores, float* out) {
    const int64_t size = fixed ? fixed : dimension;
    float largest = -INFINITY;
    for (int64_t t = 0; t < length; t++) {
        const Stored* key = keys + t * size;
        float dot = 0;
#pragma omp simd reduction(+ : dot)
        for (int64_t i = 0; i < size; i++) dot += query[i] * get(key[i]);
        scores[t] = dot * scaling;
        largest = scores[t] > largest ? scores[t] : largest;
    }
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t t = 0; t < length; t++) {
        scores[t] = exp_negative(scores[t] - largest);
        total += scores[t];
    }
    float sums[fixed ? fixed : 512];
    for (int64_t i = 0; i < size; i++) sums[i] = 0;
    for (int64_t t = 0; t < length; t++) {
        const Stored* value = values + t * size;
        const float weight = scores[t];
#pragma omp simd
        for (int64_t i = 0; i < size; i++) sums[i] += weight * get(value[i]);
    }
    const float factor = 1.0f / total;
    for (int64_t i = 0; i < size; i++) out[i] = sums[i] * factor;
}

constexpr int64_t MAX_HEAD = 512;

template <class Stored>
void attend(const float* query, const Stored* keys, const Stored* values, int64_t length,
            int64_t dimension, float scaling, float* scores, float* out) {
    switch (dimension) {
        case 64: return attend<64>(query, keys, values, length, 64, scaling, scores, out);
        case 128: return attend<128>(query, keys, values, length, 128, scaling, scores, out);
        default: return attend<0>(query, keys, values, length, dimension, scaling, scores, out);
    }
}

}  // namespace lean
