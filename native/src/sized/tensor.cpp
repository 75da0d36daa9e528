#include "tightship/sized/tensor.hpp"

#include "tightship/sized/operators.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tightship::kernels {

void Tensor::reshape(Shape shape) {
    require(shape.size() <= kRankMax, "a tensor has too many axes");
    int64_t elements = item();
    for (const int64_t length : shape)
        elements = counted({elements, length});
    rank = static_cast<uint8_t>(shape.size());
    std::copy(shape.begin(), shape.end(), lengths.begin());
}

Dims Tensor::strides() const {
    Dims strides(rank);
    int64_t step = item();
    for (size_t axis = rank; axis-- > 0;) {
        strides[axis] = step;
        step *= std::max<int64_t>(lengths[axis], 1);
    }
    return strides;
}

std::shared_ptr<char> TensorRoom::bytes(int64_t size_bytes) const {
    const auto size = static_cast<size_t>(std::max<int64_t>(size_bytes, 1));
    void *const pointer = memory_ == nullptr ? std::malloc(size) : memory_->allocate(size);
    if (pointer == nullptr)
        throw std::bad_alloc();
    if (memory_ == nullptr)
        return {static_cast<char *>(pointer), [](char *each) { std::free(each); }};
    return {static_cast<char *>(pointer), [memory = memory_](char *each) { memory->give(each); }};
}

Tensor TensorRoom::make(ElementType type, Shape shape) const {
    Tensor made;
    made.type = type;
    made.reshape(shape);
    auto owned = bytes(made.size_bytes());
    made.data = owned.get();
    made.held = std::move(owned);
    made.is_own = true;
    return made;
}

Tensor TensorRoom::make_like(const Tensor &operand) const {
    return operand.is_spare ? operand : make(operand.type, operand.shape());
}

Tensor TensorRoom::reshaped(const Tensor &source, Shape shape) const {
    if (source.held == nullptr) {
        Tensor made = make(source.type, shape);
        std::memcpy(made.data, source.data, static_cast<size_t>(made.size_bytes()));
        return made;
    }
    Tensor made = source;
    made.reshape(shape);
    return made;
}

std::pair<char *, std::shared_ptr<const void>> TensorRoom::scratch(int64_t size_bytes) const {
    constexpr uintptr_t boundary = 64;
    auto owned = bytes(size_bytes + int64_t{boundary});
    const auto start = reinterpret_cast<uintptr_t>(owned.get());
    return {owned.get() + (boundary - start % boundary) % boundary, std::move(owned)};
}

std::optional<std::vector<int64_t>> integers_of(const Tensor &tensor) {
    const auto count = static_cast<size_t>(tensor.count());
    if (tensor.type == ElementType::kInt64)
        return std::vector<int64_t>(tensor.as<int64_t>(), tensor.as<int64_t>() + count);
    if (tensor.type == ElementType::kInt32)
        return std::vector<int64_t>(tensor.as<int32_t>(), tensor.as<int32_t>() + count);
    return std::nullopt;
}

namespace {

class Computed : public SizedOperator {
  public:
    Computed(SizedFunction function, SizedSettings settings)
        : function_(function), settings_(std::move(settings)) {}

    bool run(Operands operands, Results results, const TensorRoom &room,
             int threads) const override {
        return function_(settings_, operands, results, room, threads);
    }

  private:
    SizedFunction function_;
    SizedSettings settings_;
};

} // namespace

SizedPointer sized_of(std::span<const SizedRow> rows, std::string_view name,
                      const SizedSettings &settings) {
    for (const SizedRow &row : rows) {
        if (row.name != name)
            continue;
        require(settings.integers.size() >= row.integers && settings.numbers.size() >= row.numbers,
                "an operator lacks settings");
        return std::make_shared<Computed>(row.function, settings);
    }
    return nullptr;
}

SizedPointer sized_operator(std::string_view name, const SizedSettings &settings) {
    for (const auto family :
         {&sized_shape, &sized_movement, &sized_indexing, &sized_reduction, &sized_detection,
          &sized_product, &sized_convolution, &sized_elementwise})
        if (auto made = family(name, settings))
            return made;
    return nullptr;
}

} // namespace tightship::kernels
