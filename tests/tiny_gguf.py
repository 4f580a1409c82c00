"""A GGUF file of a tiny random llama, written in the test that needs it."""

import gguf
import numpy as np
from transformers.convert_slow_tokenizer import bytes_to_unicode

WIDTH, FEED_FORWARD, LAYERS, HEADS, CONTEXT = 32, 64, 2, 4, 128
END = 257  # the first id after 256 bytes and one merge


def write_gguf(
    path,
    architecture="llama",
    without=(),
    arrays=(),
    control=("<|end|>",),
    vocab_size=True,
    **values,
):
    """A random llama of two layers in float32, with a tokenizer of bytes."""
    rng = np.random.default_rng(0)
    tokens = [*sorted(bytes_to_unicode().values()), "ab", *control]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(CONTEXT)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    if vocab_size:
        writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * END + [3] * len(control))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(END)
    for key, value in values.items():
        name = key.replace("__", ".")
        if isinstance(value, str):
            writer.add_string(name, value)
        else:
            writer.add_uint32(name, value)
    shapes = {"token_embd": (len(tokens), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {block + name: (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v")}
        shapes |= {block + "attn_output": (WIDTH, WIDTH), block + "attn_norm": (WIDTH,)}
        shapes |= {block + name: (FEED_FORWARD, WIDTH) for name in ("ffn_gate", "ffn_up")}
        shapes |= {block + "ffn_down": (WIDTH, FEED_FORWARD), block + "ffn_norm": (WIDTH,)}
    for name, shape in shapes.items():
        if name not in without:
            writer.add_tensor(f"{name}.weight", rng.standard_normal(shape, dtype=np.float32))
    for name in arrays:
        writer.add_tensor(name, np.ones(4, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
