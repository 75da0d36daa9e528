/// ReLU over 16 numbers, executed repeatedly by a plain loop over oneDNN's C interface.
#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>

namespace {

void check(dnnl_status_t status) {
    if (status != dnnl_success)
        throw std::runtime_error("oneDNN refuses");
}

struct Chain {
    explicit Chain(int count) : count(count) {
        check(dnnl_engine_create(&engine, dnnl_cpu, 0));
        check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
        const dnnl_dims_t dims = {1, 16};
        dnnl_memory_desc_t desc = nullptr;
        check(dnnl_memory_desc_create_with_tag(&desc, 2, dims, dnnl_f32, dnnl_ab));
        check(dnnl_memory_create(&memory, desc, engine, numbers));
        dnnl_primitive_attr_t attributes = nullptr;
        check(dnnl_primitive_attr_create(&attributes));
        check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
        dnnl_primitive_desc_t kind = nullptr;
        check(dnnl_eltwise_forward_primitive_desc_create(&kind, engine, dnnl_forward_inference,
                                                         dnnl_eltwise_relu, desc, desc, 0, 0,
                                                         attributes));
        check(dnnl_primitive_create(&primitive, kind));
    }

    int count;
    dnnl_engine_t engine = nullptr;
    dnnl_stream_t stream = nullptr;
    dnnl_memory_t memory = nullptr;
    dnnl_primitive_t primitive = nullptr;
    alignas(64) float numbers[16] = {};
};

} // namespace

extern "C" {

void *chain_create(int count) {
    return new Chain(count);
}

void chain_run(void *made) {
    Chain &chain = *static_cast<Chain *>(made);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, chain.memory},
                                         {DNNL_ARG_DST, chain.memory}};
    for (int step = 0; step < chain.count; ++step)
        check(dnnl_primitive_execute(chain.primitive, chain.stream, 2, arguments));
}
}
