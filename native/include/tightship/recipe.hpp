/// Recipes: the arguments of a constructor as bytes, from which another process makes the same
/// object. Numbers are little-endian, lists follow their count; reading checks bounds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tightship::recipe {

static_assert(std::endian::native == std::endian::little);

/// Bytes are not a valid recipe; the text says why.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// True while the calling thread records recipes of the objects that it makes.
inline thread_local bool is_recording = false;

class Writer {
  public:
    void put(const void *data, size_t size) {
        bytes_.append(static_cast<const char *>(data), size);
    }
    /// Marks the recipe as incomplete, because a part cannot be written.
    void fail() { is_complete_ = false; }
    /// Returns the bytes; empty if a part could not be written.
    std::string take() { return is_complete_ ? std::move(bytes_) : std::string(); }

  private:
    std::string bytes_;
    bool is_complete_ = true;
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    std::string_view take(size_t size) {
        if (size > bytes_.size())
            throw Error("A recipe ends early.");
        const std::string_view taken = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return taken;
    }
    size_t left() const { return bytes_.size(); }
    void expect_end() const {
        if (!bytes_.empty())
            throw Error("A recipe goes on after its end.");
    }

  private:
    std::string_view bytes_;
};

/// Encoding of a type's values, and the type that they are decoded to.
template <class T> struct Codec;

template <class T> void encode(Writer &writer, const T &value) {
    Codec<T>::encode(writer, value);
}

template <class T> auto decode(Reader &reader) {
    return Codec<T>::decode(reader);
}

template <class T>
    requires std::is_arithmetic_v<T>
struct Codec<T> {
    static void encode(Writer &writer, T value) { writer.put(&value, sizeof value); }
    static T decode(Reader &reader) {
        T value;
        const std::string_view bytes = reader.take(sizeof value);
        if constexpr (std::is_same_v<T, bool>) {
            if (bytes[0] != 0 && bytes[0] != 1)
                throw Error("A recipe has a flag that is neither true nor false.");
            return bytes[0] == 1;
        }
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
};

template <> struct Codec<std::string_view> {
    static void encode(Writer &writer, std::string_view text) {
        recipe::encode(writer, static_cast<uint32_t>(text.size()));
        writer.put(text.data(), text.size());
    }
    static std::string_view decode(Reader &reader) {
        return reader.take(recipe::decode<uint32_t>(reader));
    }
};

template <> struct Codec<std::string> {
    static void encode(Writer &writer, std::string_view text) {
        Codec<std::string_view>::encode(writer, text);
    }
    static std::string decode(Reader &reader) {
        return std::string(Codec<std::string_view>::decode(reader));
    }
};

template <class T> struct Codec<std::vector<T>> {
    static void encode(Writer &writer, const std::vector<T> &items) {
        recipe::encode(writer, static_cast<uint32_t>(items.size()));
        for (const T &item : items)
            recipe::encode<T>(writer, item);
    }
    static std::vector<T> decode(Reader &reader) {
        const auto count = recipe::decode<uint32_t>(reader);
        if (count > reader.left())
            throw Error("A recipe ends within a list.");
        std::vector<T> items;
        for (uint32_t index = 0; index < count; ++index)
            items.push_back(recipe::decode<T>(reader));
        return items;
    }
};

template <class... Ts> struct Codec<std::tuple<Ts...>> {
    static void encode(Writer &writer, const std::tuple<Ts...> &items) {
        std::apply([&](const Ts &...each) { (recipe::encode<Ts>(writer, each), ...); }, items);
    }
    static auto decode(Reader &reader) {
        // Braces guarantee evaluation from left to right.
        return std::tuple<decltype(recipe::decode<Ts>(reader))...>{recipe::decode<Ts>(reader)...};
    }
};

template <class First, class Second> struct Codec<std::pair<First, Second>> {
    static void encode(Writer &writer, const std::pair<First, Second> &items) {
        recipe::encode<First>(writer, items.first);
        recipe::encode<Second>(writer, items.second);
    }
    static std::pair<First, Second> decode(Reader &reader) {
        auto first = recipe::decode<First>(reader);
        return {std::move(first), recipe::decode<Second>(reader)};
    }
};

template <class T, size_t count> struct Codec<std::array<T, count>> {
    static void encode(Writer &writer, const std::array<T, count> &items) {
        for (const T &item : items)
            recipe::encode<T>(writer, item);
    }
    static std::array<T, count> decode(Reader &reader) {
        std::array<T, count> items;
        for (T &item : items)
            item = recipe::decode<T>(reader);
        return items;
    }
};

/// Codec of an enumeration without gaps, up to `last`.
template <class T, T last> struct EnumCodec {
    static void encode(Writer &writer, T value) {
        recipe::encode(writer, static_cast<uint8_t>(value));
    }
    static T decode(Reader &reader) {
        const auto value = recipe::decode<uint8_t>(reader);
        if (value > static_cast<uint8_t>(last))
            throw Error("A recipe has an unknown enumerator.");
        return static_cast<T>(value);
    }
};

/// Encodes the arguments of a call; `Codec::decode` of each type reads them back in order.
template <class... Arguments> std::string written(const std::decay_t<Arguments> &...arguments) {
    Writer writer;
    (encode<std::decay_t<Arguments>>(writer, arguments), ...);
    return writer.take();
}

} // namespace tightship::recipe
