// One step of a Llama or Qwen2 decoder: token ids in, logits out, keys and values appended.
//
// All threads run the same code, each its share of every product, and meet after each of the six
// parts of a layer. The structs are declared again in generation/kernel_library.py.
#pragma once

#include "attention.h"
#include "matrix.h"
#include "pool.h"

namespace lean {

struct Layer {
    const float *attention_norm, *mlp_norm;  // (hidden)
    Matrix query, key, value, output, gate, up, down;
};

struct Model {
    int64_t layers, hidden, heads, kv_heads, head_size, intermediate;
    float epsilon, rotary_scaling;
    const float* rotary_frequencies;  // (head_size / 2)
    const float* final_norm;          // (hidden)
    Matrix embedding, head;           // (vocabulary, hidden)
    const Layer* layer;
};

struct Step {
    int64_t batch, tokens;    // rows of the cache, and new tokens for each of them
    int64_t keep;             // of how many of the last tokens the logits are wanted
    int64_t capacity;         // of the cache, in positions
    int64_t bf16_cache;       // else 32-bit floats
    const int64_t* token_ids; // (batch, tokens)
    const int64_t* past;      // (batch): positions held before this step
    void* const* keys;        // for each layer (batch, kv_heads, capacity, head_size)
    void* const* values;
    float* logits;            // (batch, keep, vocabulary)
};

inline int64_t padded(int64_t size) { return (size + GROUP - 1) / GROUP * GROUP; }

using Buffer = std::vector<float>;

class Decoder {
  public:
    Decoder(const Model& model, int threads) : model_(model), pool_(threads), scratch_(threads) {
        const int64_t heads = padded(model.heads * model.head_size);
        const int64_t kv = padded(model.kv_heads * model.head_size);
        const int64_t hidden = padded(model.hidden), wide = padded(model.intermediate);
        state_.resize(MAX_ROWS * hidden);
        query_.resize(MAX_ROWS * heads);
        key_.resize(MAX_ROWS * kv);
        value_.resize(MAX_ROWS * kv);
        attended_.resize(MAX_ROWS * heads);
        wide_.resize(MAX_ROWS * wide);
        angles_.resize(MAX_ROWS * model.head_size);
        int64_t largest = hidden > heads ? hidden : heads;
        largest = largest > wide ? largest : wide;
        for (auto& own : scratch_) {
            own.normed.resize(MAX_ROWS * hidden);
            own.sums.resize(MAX_ROWS * largest / GROUP);
        }
    }

    void step(const Step& step) {
        std::lock_guard<std::mutex> lock(busy_);
        auto task = [&](int rank) {
            if (step.bf16_cache) run<uint16_t>(step, rank);
            else run<float>(step, rank);
        };
        pool_.run(task);
    }

  private:
    struct Scratch {
        Buffer normed, sums, scores;
    };

    template <class Stored>
    void run(const Step& step, int rank) {
        const int rows = int(step.batch * step.tokens);
        begin(step, rank, rows);
        for (int64_t i = 0; i < model_.layers; i++) {
            const Layer& layer = model_.layer[i];
            auto keys = static_cast<Stored*>(step.keys[i]);
            auto values = static_cast<Stored*>(step.values[i]);
            project(layer, rank, rows);
            append(step, rank, rows, keys, values);
            attention(step, rank, rows, keys, values);
            add_product(layer.output, attended_, model_.heads * model_.head_size, rank, rows);
            gated(layer, rank, rows);
            add_product(layer.down, wide_, model_.intermediate, rank, rows);
        }
        logits(step, rank, rows);
    }

    void begin(const Step& step, int rank, int rows) {
        for (int row = rank; row < rows; row += pool_.threads) {
            const int64_t position = step.past[row / step.tokens] + row % step.tokens;
            row_values(model_.embedding, step.token_ids[row],
                       &state_[row * padded(model_.hidden)]);
            rotary_angles(model_.rotary_frequencies, model_.rotary_scaling, position,
                          model_.head_size, &angles_[row * model_.head_size]);
        }
        pool_.barrier.wait();
    }

    // Every thread norms for itself: it is less work than waiting for another.
    Rows normed(const float* weight, int rank, int rows) {
        const int64_t stride = padded(model_.hidden);
        Buffer& out = scratch_[rank].normed;
        for (int row = 0; row < rows; row++)
            rms_norm(&state_[row * stride], weight, model_.epsilon, model_.hidden,
                     &out[row * stride]);
        return with_sums(out, model_.hidden, rank, rows);
    }

    Rows with_sums(const Buffer& values, int64_t columns, int rank, int rows) {
        const int64_t stride = padded(columns);
        Buffer& sums = scratch_[rank].sums;
        for (int row = 0; row < rows; row++)
            group_sums(&values[row * stride], stride, &sums[row * stride / GROUP]);
        return {values.data(), stride, sums.data(), stride / GROUP};
    }

    // Call use(row, first output, count, outputs) for this thread's share of the product.
    template <class Use>
    void product(const Matrix& matrix, const Rows& x, int rank, int rows, Use use) {
        const int64_t tiles = matrix.tiles();
        float out[MAX_ROWS * TILE];
        for (int64_t t = tiles * rank / pool_.threads; t < tiles * (rank + 1) / pool_.threads;
             t++) {
            tile_product(matrix, t, x, rows, out);
            const int64_t left = matrix.rows - t * TILE;
            for (int row = 0; row < rows; row++)
                use(row, t * TILE, left < TILE ? left : TILE, out + row * TILE);
        }
    }

    void product_into(const Matrix& matrix, const Rows& x, Buffer& to, int rank, int rows) {
        const int64_t stride = padded(matrix.rows);
        product(matrix, x, rank, rows, [&](int row, int64_t first, int64_t n, const float* out) {
            put(out, n, &to[row * stride + first]);
        });
    }

    void project(const Layer& layer, int rank, int rows) {
        const Rows x = normed(layer.attention_norm, rank, rows);
        product_into(layer.query, x, query_, rank, rows);
        product_into(layer.key, x, key_, rank, rows);
        product_into(layer.value, x, value_, rank, rows);
        pool_.barrier.wait();
    }

    template <class Stored>
    void append(const Step& step, int rank, int rows, Stored* keys, Stored* values) {
        const int64_t size = model_.head_size, heads = model_.heads, kv_heads = model_.kv_heads;
        for (int64_t unit = rank; unit < rows * kv_heads; unit += pool_.threads) {
            const int64_t row = unit / kv_heads, head = unit % kv_heads;
            const int64_t batch = row / step.tokens;
            const int64_t position = step.past[batch] + row % step.tokens;
            const int64_t at = ((batch * kv_heads + head) * step.capacity + position) * size;
            const int64_t from = row * padded(kv_heads * size) + head * size;
            rotate(&key_[from], &angles_[row * size], size);
            put(&key_[from], size, keys + at);
            put(&value_[from], size, values + at);
            const int64_t each = heads / kv_heads;
            for (int64_t g = head * each; g < (head + 1) * each; g++)
                rotate(&query_[row * padded(heads * size) + g * size], &angles_[row * size], size);
        }
        pool_.barrier.wait();
    }

    template <class Stored>
    void attention(const Step& step, int rank, int rows, const Stored* keys,
                   const Stored* values) {
        const int64_t size = model_.head_size, heads = model_.heads;
        const float scaling = 1.0f / std::sqrt(float(size));
        Buffer& scores = scratch_[rank].scores;
        if (int64_t(scores.size()) < MAX_SHARING * step.capacity)
            scores.resize(MAX_SHARING * step.capacity);
        const int64_t each = heads / model_.kv_heads, units = rows * heads;
        const int64_t end = units * (rank + 1) / pool_.threads;
        for (int64_t unit = units * rank / pool_.threads, next; unit < end; unit = next) {
            next = (unit / each + 1) * each;  // up to the end of the group that shares keys
            next = next < end ? next : end;
            next = next < unit + MAX_SHARING ? next : unit + MAX_SHARING;
            const int64_t row = unit / heads, head = unit % heads, batch = row / step.tokens;
            const int64_t at = (batch * model_.kv_heads + head / each) * step.capacity * size;
            const int64_t length = step.past[batch] + row % step.tokens + 1;
            const int64_t from = row * padded(heads * size) + head * size;
            attend(int(next - unit), &query_[from], Past<Stored>{keys + at, values + at, length, size},
                   scaling, scores.data(), &attended_[from]);
        }
        pool_.barrier.wait();
    }

    // Add matrix * values to the residual stream.
    void add_product(const Matrix& matrix, const Buffer& values, int64_t columns, int rank,
                     int rows) {
        const int64_t stride = padded(model_.hidden);
        const Rows x = with_sums(values, columns, rank, rows);
        product(matrix, x, rank, rows, [&](int row, int64_t first, int64_t n, const float* out) {
            for (int64_t i = 0; i < n; i++) state_[row * stride + first + i] += out[i];
        });
        pool_.barrier.wait();
    }

    // silu(gate x) * (up x), both tiles by the same thread.
    void gated(const Layer& layer, int rank, int rows) {
        const int64_t stride = padded(model_.intermediate);
        const Rows x = normed(layer.mlp_norm, rank, rows);
        float up[MAX_ROWS * TILE];
        product(layer.gate, x, rank, rows, [&](int row, int64_t first, int64_t n, const float* g) {
            if (row == 0) tile_product(layer.up, first / TILE, x, rows, up);
            float* to = &wide_[row * stride + first];
#pragma omp simd
            for (int64_t i = 0; i < n; i++) to[i] = silu(g[i]) * up[row * TILE + i];
        });
        pool_.barrier.wait();
    }

    void logits(const Step& step, int rank, int rows) {
        const Rows x = normed(model_.final_norm, rank, rows);
        product(model_.head, x, rank, rows, [&](int row, int64_t first, int64_t n,
                                                const float* out) {
            const int64_t from_end = step.tokens - row % step.tokens;
            if (from_end > step.keep) return;
            const int64_t to = (row / step.tokens) * step.keep + step.keep - from_end;
            put(out, n, step.logits + to * model_.head.rows + first);
        });
    }

    const Model model_;
    std::mutex busy_;  // steps of several conversations take turns
    Pool pool_;
    Buffer state_, query_, key_, value_, attended_, wide_, angles_;
    std::vector<Scratch> scratch_;
};

}  // namespace lean
