// Vectors of numbers, one lane per output row, as wide as the processor has them.
//
// Written with the vector extensions that GCC and Clang share, so that one source serves AVX-512,
// AVX2, SSE and NEON; where AVX-512 has one instruction for what else takes three, that is used.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

namespace lean {

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
constexpr int TILE = 16;             // output rows stored side by side, whatever the processor
constexpr int PARTS = TILE / LANES;  // vectors that make up one tile
constexpr int GROUP = 32;            // weights of one row that are stored together

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint16_t Shorts __attribute__((vector_size(2 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

template <class Vector>
inline Vector load(const void* from) {
    Vector value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class Vector>
inline void store(void* to, Vector value) {
    __builtin_memcpy(to, &value, sizeof value);
}

inline float float_of_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of_bf16(uint16_t bits) { return float_of_bits(uint32_t(bits) << 16); }

// Rounded to the nearest, ties to even, as torch does; no NaN gets here.
inline uint16_t bf16_of_float(float value) {
    const uint32_t bits = bits_of_float(value);
    return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float float_of_half(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16;
    const uint32_t rest = half & 0x7fff;
    if (rest >= 0x7c00) return float_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    // Multiplying by 2^112 puts the exponent right, for subnormal numbers as well.
    return float_of_bits(sign | bits_of_float(float_of_bits(rest << 13) * 0x1p112f));
}

// LANES numbers of 16 bits, as floats.
inline Floats load_halves(const uint16_t* from) {
#if defined(__AVX512F__)
    return (Floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
#elif defined(__F16C__)
    return (Floats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
#else
    Floats value;
    for (int lane = 0; lane < LANES; lane++) value[lane] = float_of_half(from[lane]);
    return value;
#endif
}

// The low four bits of each lane, as floats.
inline Floats low_nibbles(Words words) {
#if defined(__AVX512F__)
    const __m512 table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (Floats)_mm512_permutexvar_ps((__m512i)words, table);  // looks at four bits only
#else
    return __builtin_convertvector((Ints)(words & 15), Floats);
#endif
}

// The low four bits of each lane of `words` and the fifth of `high`, as floats.
inline Floats five_bits(Words words, Words high) {
#if defined(__AVX512F__)
    const __m512 low = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 table = _mm512_add_ps(low, _mm512_set1_ps(16.0f));
    const __m512i index = _mm512_ternarylogic_epi32(  // where the mask has a bit, that of `high`
        (__m512i)words, (__m512i)high, _mm512_set1_epi32(16), 0xd8);
    return (Floats)_mm512_permutex2var_ps(low, index, table);  // looks at five bits only
#else
    return __builtin_convertvector((Ints)((words & 15) | (high & 16)), Floats);
#endif
}

inline float sum_of_lanes(Floats values) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)values);
#else
    float sum = values[0];
    for (int lane = 1; lane < LANES; lane++) sum += values[lane];
    return sum;
#endif
}

// e^x within 2 units in the last place for x <= 0; 0 below -87. Made of what vectorizes.
inline float exp_negative(float x) {
    const float clamped = x < -87.0f ? -87.0f : x;
    const float magic = 0x1.8p23f;  // adding it rounds to a whole number
    const float n = (clamped * 1.44269504f + magic) - magic;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const float scale = float_of_bits(uint32_t(int32_t(n) + 127) << 23);
    return x < -87.0f ? 0.0f : p * scale;
}

inline float silu(float x) {
    const float e = exp_negative(x < 0 ? x : -x);
    return x * (x < 0 ? e : 1.0f) / (1.0f + e);
}

}  // namespace lean
