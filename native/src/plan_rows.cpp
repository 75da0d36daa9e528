#include "tightship/plan_rows.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace tightship::plan_rows {
namespace {

constexpr std::size_t kNesting = 64;

bool is_one_of(std::string_view letters, char letter) {
    return letters.find(letter) != std::string_view::npos;
}

/// Reads JSON from left to right. A function returns false if the text is not what it reads.
class Scanner {
  public:
    explicit Scanner(std::string_view content) : content_(content) {}

    std::size_t at() const { return at_; }

    bool take(char wanted) {
        skip_space();
        if (at_ == content_.size() || content_[at_] != wanted)
            return false;
        ++at_;
        return true;
    }

    bool next_is(char wanted) {
        skip_space();
        return at_ < content_.size() && content_[at_] == wanted;
    }

    /// Reads a string without escapes.
    bool text(std::string_view &found) {
        if (!take('"'))
            return false;
        const std::size_t begin = at_;
        while (at_ < content_.size() && content_[at_] != '"' && content_[at_] != '\\' &&
               static_cast<unsigned char>(content_[at_]) >= 0x20)
            ++at_;
        found = content_.substr(begin, at_ - begin);
        return take('"');
    }

    bool word(std::string_view wanted) {
        skip_space();
        if (content_.substr(at_, wanted.size()) != wanted)
            return false;
        at_ += wanted.size();
        return true;
    }

    bool integer(std::int64_t &found) {
        skip_space();
        const char *begin = content_.data() + at_;
        const char *end = content_.data() + content_.size();
        if (begin == end || *begin < '0' || *begin > '9')
            return false;
        const auto [stop, error] = std::from_chars(begin, end, found);
        if (error != std::errc{} || (*begin == '0' && stop - begin > 1))
            return false;
        at_ += stop - begin;
        return at_ == content_.size() || is_one_of(",}] \n\r\t", content_[at_]);
    }

    /// Skips any value, checking only its nesting.
    bool skip_value() {
        std::size_t depth = 0;
        do {
            skip_space();
            if (at_ == content_.size())
                return false;
            const char next = content_[at_];
            if (next == '"') {
                if (!skip_text())
                    return false;
                continue;
            }
            if (depth == 0 && (next == ',' || next == '}' || next == ']'))
                return false;
            ++at_;
            if (next == '{' || next == '[')
                ++depth;
            else if (next == '}' || next == ']')
                --depth;
            else if (depth == 0)
                at_ = std::min(content_.find_first_of(",}] \n\r\t", at_), content_.size());
        } while (depth > 0 && depth < kNesting);
        return depth == 0;
    }

  private:
    void skip_space() {
        while (at_ < content_.size() && is_one_of(" \n\r\t", content_[at_]))
            ++at_;
    }

    bool skip_text() {
        for (++at_; at_ < content_.size(); ++at_) {
            if (content_[at_] == '"') {
                ++at_;
                return true;
            }
            at_ += content_[at_] == '\\';
        }
        return false;
    }

    std::string_view content_;
    std::size_t at_ = 0;
};

bool read_row(Scanner &json, Rows &rows) {
    unsigned seen = 0;
    if (!json.take('{'))
        return false;
    do {
        std::string_view key;
        if (!json.text(key) || !json.take(':'))
            return false;
        const std::size_t field = std::ranges::find(kFields, key) - kFields.begin();
        if (field == kFields.size() && key != "name")
            return false;
        if (seen >> field & 1)
            return false;
        seen |= 1U << field;
        if (field < kFields.size()) {
            std::int64_t value = 0;
            if (!json.integer(value))
                return false;
            rows.columns[field].push_back(value);
        } else if (std::string_view name; json.next_is('"')) {
            if (!json.text(name))
                return false;
            rows.names.text += name;
            rows.names.stop.push_back(static_cast<std::int64_t>(rows.names.text.size()));
        } else if (!json.word("null")) {
            return false;
        }
    } while (json.take(','));
    return json.take('}') && seen == (2U << kFields.size()) - 1;
}

bool read_array(Scanner &json, Rows &rows) {
    json.next_is('[');
    rows.begin = json.at();
    if (!json.take('['))
        return false;
    if (!json.next_is(']')) {
        do {
            if (!read_row(json, rows))
                return false;
        } while (json.take(','));
    }
    if (!json.take(']'))
        return false;
    rows.end = json.at();
    const std::size_t named = rows.names.stop.size();
    return named == 0 || named == rows.columns.front().size();
}

void append(std::string &text, std::int64_t value) {
    std::array<char, std::numeric_limits<std::int64_t>::digits10 + 2> digits{};
    text.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
}

void append_quoted(std::string &text, std::string_view name) {
    constexpr std::string_view kHex = "0123456789abcdef";
    text += '"';
    for (const char letter : name) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\')
            (text += '\\') += letter;
        else if (code < 0x20)
            ((text += "\\u00") += kHex[code / 16]) += kHex[code % 16];
        else
            text += letter;
    }
    text += '"';
}

} // namespace

std::optional<Rows> read(std::string_view content) {
    Scanner json(content);
    if (!json.take('{'))
        return std::nullopt;
    do {
        std::string_view key;
        if (!json.text(key) || !json.take(':'))
            return std::nullopt;
        if (key == "buffers") {
            Rows rows{};
            return read_array(json, rows) ? std::optional(std::move(rows)) : std::nullopt;
        }
    } while (json.skip_value() && json.take(','));
    return std::nullopt;
}

std::string write(std::span<const std::span<const std::int64_t>> columns, const char *names,
                  std::span<const std::int64_t> stops) {
    std::string text;
    const std::size_t count = columns.front().size();
    for (std::size_t row = 0; row < count; ++row) {
        text += row == 0 ? "{\"name\": " : ",\n  {\"name\": ";
        if (names == nullptr) {
            text += "null";
        } else {
            const std::int64_t begin = row == 0 ? 0 : stops[row - 1];
            append_quoted(text, {names + begin, static_cast<std::size_t>(stops[row] - begin)});
        }
        for (std::size_t field = 0; field < kFields.size(); ++field) {
            ((text += ", \"") += kFields[field]) += "\": ";
            append(text, columns[field][row]);
        }
        text += '}';
    }
    return text;
}

} // namespace tightship::plan_rows
