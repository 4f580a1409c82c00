// What Python calls, through ctypes, which lets go of the interpreter's lock meanwhile.
//
// `lean_layout` lets it check that its declarations of the structs agree with these.
#include <exception>

#include "decoder.h"

using namespace lean;

extern "C" {

int64_t lean_layout(int which) {
    const int64_t sizes[] = {sizeof(Matrix), sizeof(Layer), sizeof(Model), sizeof(Step), MAX_ROWS,
                             LANES};
    return which >= 0 && which < int(sizeof sizes / sizeof *sizes) ? sizes[which] : -1;
}

void* lean_new(const Model* model, int threads) {
    try {
        return new Decoder(*model, threads);
    } catch (const std::exception&) {  // no memory, or no more threads
        return nullptr;
    }
}

void lean_free(void* decoder) { delete static_cast<Decoder*>(decoder); }

void lean_step(void* decoder, const Step* step) { static_cast<Decoder*>(decoder)->step(*step); }

// out (count, rows): one matrix times `count` rows of x (count, columns padded to whole groups).
void lean_product(const Matrix* matrix, const float* x, int count, float* out) {
    const int64_t stride = padded(matrix->columns);
    Buffer sums(count * stride / GROUP);
    for (int b = 0; b < count; b++) group_sums(x + b * stride, stride, &sums[b * stride / GROUP]);
    const Rows rows{x, stride, sums.data(), stride / GROUP};
    float tile[MAX_ROWS * TILE];
    for (int64_t t = 0; t < matrix->tiles(); t++) {
        tile_product(*matrix, t, rows, count, tile);
        const int64_t left = matrix->rows - t * TILE;
        for (int b = 0; b < count; b++)
            put(tile + b * TILE, left < TILE ? left : TILE, out + b * matrix->rows + t * TILE);
    }
}

void lean_row(const Matrix* matrix, int64_t row, float* out) { row_values(*matrix, row, out); }

}  // extern "C"
