/// Binding of factories whose objects can be reconstructed from their recipes.
#pragma once

#include "bind.hpp"
#include "tightship/onednn/primitive.hpp"
#include "tightship/recipe.hpp"

#include <functional>
#include <map>
#include <string>

namespace tightship::recipe {

template <> struct Codec<nanobind::bytes> {
    static void encode(Writer &writer, const nanobind::bytes &bytes) {
        Codec<std::string_view>::encode(writer, {bytes.c_str(), bytes.size()});
    }
    static nanobind::bytes decode(Reader &reader) {
        const std::string_view text = Codec<std::string_view>::decode(reader);
        return nanobind::bytes(text.data(), text.size());
    }
};

} // namespace tightship::recipe

namespace tightship::bind {

/// Factories of a class by name; each reads its arguments and makes the object.
template <class Made> std::map<std::string, std::function<Made(recipe::Reader &)>> &factories() {
    static std::map<std::string, std::function<Made(recipe::Reader &)>> table;
    return table;
}

/// Reconstructs an object from a recipe. Throws recipe::Error, or as the factory does.
template <class Made> Made made_again(std::string_view bytes) {
    recipe::Reader reader(bytes);
    const auto found = factories<Made>().find(recipe::decode<std::string>(reader));
    if (found == factories<Made>().end())
        throw recipe::Error("A recipe names an unknown factory.");
    return found->second(reader);
}

inline void keep_recipe(const std::shared_ptr<const Kernel> &kernel, std::string text) {
    if (kernel != nullptr)
        std::const_pointer_cast<Kernel>(kernel)->recipe = std::move(text);
}

#ifdef TIGHTSHIP_ONEDNN
inline void keep_recipe(onednn::PrimitiveDesc &primitive, std::string text) {
    primitive.recipe = std::move(text);
}
#endif

/// Wrapper of `class_.def_static` for factories, whose arguments are recorded if the thread records
/// recipes.
template <class Class> class Recorded {
  public:
    explicit Recorded(nanobind::class_<Class> &target) : target_(target) {}

    template <class Function, class... Extra>
    Recorded &def_static(const char *name, Function function, const Extra &...extra) {
        bind(name, std::function(function), extra...);
        return *this;
    }

  private:
    template <class Made, class... Arguments, class... Extra>
    void bind(const char *name, std::function<Made(Arguments...)> factory, const Extra &...extra) {
        factories<Made>()[name] = [factory](recipe::Reader &reader) {
            auto arguments = recipe::decode<std::tuple<std::decay_t<Arguments>...>>(reader);
            reader.expect_end();
            return std::apply([&](auto &...each) { return factory(each...); }, arguments);
        };
        target_.def_static(
            name,
            [factory, name](Arguments... arguments) {
                std::string text;
                if (recipe::is_recording)
                    text = recipe::written<std::string, Arguments...>(name, arguments...);
                Made made = factory(std::forward<Arguments>(arguments)...);
                if (!text.empty())
                    keep_recipe(made, std::move(text));
                return made;
            },
            extra...);
    }

    nanobind::class_<Class> &target_;
};

template <class Class> Recorded<Class> recorded(nanobind::class_<Class> &target) {
    return Recorded<Class>(target);
}

} // namespace tightship::bind
