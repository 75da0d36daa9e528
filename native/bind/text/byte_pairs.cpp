#include "tightship/text/byte_pairs.hpp"
#include "bind.hpp"

#include <string_view>
#include <vector>

namespace nb = nanobind;

namespace tightship::bind {

namespace {

/// Returns the UTF-8 bytes of a text; throws what Python raises if it has none.
std::string_view view_of(nb::handle text) {
    Py_ssize_t size = 0;
    const char *bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr)
        throw nb::python_error();
    return {bytes, static_cast<size_t>(size)};
}

std::vector<std::string_view> views_of(const nb::list &texts) {
    std::vector<std::string_view> views;
    views.reserve(nb::len(texts));
    for (const nb::handle text : texts)
        views.push_back(view_of(text));
    return views;
}

nb::list encoded(const text::BytePairs &self, const nb::list &words) {
    std::vector<int32_t> found;
    for (const nb::handle word : words)
        self.encode(view_of(word), found);
    nb::list numbers;
    for (const int32_t number : found)
        numbers.append(number);
    return numbers;
}

} // namespace

void byte_pairs(nb::module_ &module) {
    nb::class_<text::BytePairs>(module, "BytePairs",
                                "Encoder of words by a list of merges. May be used from several "
                                "threads.")
        .def(
            "__init__",
            [](text::BytePairs *self, const nb::list &tokens, const nb::list &merges,
               bool ignores_merges) {
                new (self) text::BytePairs(views_of(tokens), views_of(merges), ignores_merges);
            },
            nb::arg("tokens"), nb::arg("merges"), nb::arg("ignores_merges"),
            nb::sig("def __init__(self, tokens: list[str], merges: list[str], "
                    "ignores_merges: bool) -> None"),
            "Take the tokens by number, and pairs of them with a space between, the first to be "
            "joined first.\n\nWith `ignores_merges`, a word that is a token becomes it.\n\n"
            "Raises:\n    ValueError: A merge is not a pair, or its parts or result are not "
            "tokens.")
        .def("encode", &encoded, nb::arg("words"),
             nb::sig("def encode(self, words: list[str]) -> list[int]"),
             "Return the tokens of words, one after the other; letters without a token are left "
             "out.");
}

} // namespace tightship::bind
