#include "tightship/table.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <utility>

namespace tightship::table {
namespace {

constexpr std::size_t kFieldBytesMax = 131072;

bool ends_line(char c) {
    return c == '\n' || c == '\r';
}

/// Reads the fields of a table one after another.
class Cursor {
  public:
    Cursor(std::string_view content, std::size_t position, std::int64_t line)
        : content_(content), position_(position), line_(line) {}

    /// Moves to the next line that is not empty; false at the end.
    bool next_row() {
        while (position_ < content_.size() && ends_line(content_[position_]))
            end_line();
        row_ended_ = false;
        return position_ < content_.size();
    }

    bool row_ended() const { return row_ended_; }
    std::size_t position() const { return position_; }
    std::int64_t line() const { return line_; }
    Fault fault() const { return fault_; }

    /// Returns the next field of the row, valid until the next call.
    std::string_view field() {
        const std::string_view read = at('"') ? quoted() : plain();
        if (read.size() > kFieldBytesMax)
            fault_ = Fault::too_long;
        if (at(','))
            ++position_;
        else
            end_row();
        return read;
    }

  private:
    bool at(char c) const { return position_ < content_.size() && content_[position_] == c; }

    std::string_view plain() {
        const std::size_t begin = position_;
        while (position_ < content_.size() && content_[position_] != ',' &&
               !ends_line(content_[position_]))
            ++position_;
        return content_.substr(begin, position_ - begin);
    }

    std::string_view quoted() {
        unquoted_.clear();
        ++position_;
        for (;; ++position_) {
            if (position_ >= content_.size()) {
                fault_ = Fault::quote;
                return unquoted_;
            }
            const char c = content_[position_];
            if (c == '"' && (++position_ >= content_.size() || content_[position_] != '"'))
                break;
            if (c == '\n' || (c == '\r' && !(position_ + 1 < content_.size() &&
                                             content_[position_ + 1] == '\n')))
                ++line_;
            unquoted_ += c;
        }
        if (position_ < content_.size() && !at(',') && !ends_line(content_[position_]))
            fault_ = Fault::quote;
        return unquoted_;
    }

    void end_line() {
        const bool both =
            at('\r') && position_ + 1 < content_.size() && content_[position_ + 1] == '\n';
        position_ += both ? 2 : 1;
        ++line_;
    }

    /// Ends the row; its line is counted when the next row is read, so that `line` is the row's.
    void end_row() { row_ended_ = true; }

    std::string_view content_;
    std::size_t position_;
    std::int64_t line_;
    bool row_ended_ = false;
    Fault fault_ = Fault::none;
    std::string unquoted_;
};

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

Fault read_integer(std::string_view text, std::int64_t &value) {
    text = trimmed(text);
    const bool negative = !text.empty() && text.front() == '-';
    if (negative || (!text.empty() && text.front() == '+'))
        text.remove_prefix(1);
    if (text.empty() || text.front() == '-')
        return Fault::not_integer;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::invalid_argument || end != text.data() + text.size())
        return Fault::not_integer;
    const bool outside = error == std::errc::result_out_of_range || (negative && value != 0);
    return outside ? Fault::out_of_range : Fault::none;
}

/// Returns whether each word is longer than the one before, or as long and larger: then all differ.
bool rises(std::string_view text, std::span<const std::int64_t> stop) {
    std::string_view last;
    std::size_t begin = 0;
    for (std::size_t row = 0; row < stop.size(); ++row) {
        const auto end = static_cast<std::size_t>(stop[row]);
        const std::string_view word = text.substr(begin, end - begin);
        if (row > 0 && std::pair(word.size(), word) <= std::pair(last.size(), last))
            return false;
        last = word;
        begin = end;
    }
    return true;
}

class Reader {
  public:
    Reader(std::span<const Kind> kinds) : kinds_(kinds) {
        for (const Kind kind : kinds)
            if (kind == Kind::words)
                table_.columns.emplace_back(Words{});
            else
                table_.columns.emplace_back(Integers{});
    }

    /// Reads the cursor's row; false if it is refused.
    bool row(Cursor &cursor) {
        std::size_t column = 0;
        for (; !cursor.row_ended(); ++column) {
            const std::string_view text = cursor.field();
            if (cursor.fault() != Fault::none)
                return refuse(cursor.fault(), cursor.line(), column, text);
            if (column >= kinds_.size())
                continue;
            if (const Fault fault = keep(column, text);
                fault != Fault::none && fault_ == Fault::none) {
                fault_ = fault;
                fault_column_ = column;
                fault_text_ = text;
            }
        }
        table_.line.push_back(cursor.line());
        if (column != kinds_.size())
            return refuse(Fault::field_count, cursor.line(), 0, std::to_string(column));
        return fault_ == Fault::none || refuse(fault_, cursor.line(), fault_column_, fault_text_);
    }

    Table take() { return std::move(table_); }

  private:
    Fault keep(std::size_t column, std::string_view text) {
        if (kinds_[column] == Kind::ignored)
            return Fault::none;
        if (kinds_[column] == Kind::words) {
            Words &words = std::get<Words>(table_.columns[column]);
            words.text += text;
            words.stop.push_back(static_cast<std::int64_t>(words.text.size()));
            return Fault::none;
        }
        std::int64_t value = -1;
        Fault fault = Fault::none;
        if (kinds_[column] == Kind::integer || !trimmed(text).empty())
            fault = read_integer(text, value);
        std::get<Integers>(table_.columns[column]).push_back(value);
        return fault;
    }

    bool refuse(Fault fault, std::int64_t line, std::size_t column, std::string_view text) {
        table_.refusal = {fault, line, column, std::string(text)};
        return false;
    }

    std::span<const Kind> kinds_;
    Table table_;
    Fault fault_ = Fault::none;
    std::size_t fault_column_ = 0;
    std::string fault_text_;
};

void append(std::string &out, std::int64_t value) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    out.append(digits, end);
}

void append(std::string &out, std::string_view word) {
    if (word.find_first_of(",\"\r\n") == std::string_view::npos) {
        out += word;
        return;
    }
    out += '"';
    for (const char c : word)
        out.append(c == '"' ? 2 : 1, c);
    out += '"';
}

} // namespace

Header read_header(std::string_view content) {
    Header header;
    Cursor cursor(content, 0, 1);
    if (cursor.next_row())
        while (!cursor.row_ended() && cursor.fault() == Fault::none)
            header.fields.emplace_back(cursor.field());
    header.stop = cursor.position();
    header.line = cursor.line();
    header.refusal = {cursor.fault(), cursor.line(), 0, {}};
    return header;
}

Table read_rows(std::string_view content, const Header &header, std::span<const Kind> kinds) {
    Cursor cursor(content, header.stop, header.line);
    Reader reader(kinds);
    while (cursor.next_row() && reader.row(cursor)) {
    }
    return reader.take();
}

std::size_t first_repeat(std::string_view text, std::span<const std::int64_t> stop) {
    if (rises(text, stop))
        return stop.size();
    std::unordered_set<std::string_view> seen;
    seen.reserve(stop.size());
    std::size_t begin = 0;
    for (std::size_t row = 0; row < stop.size(); ++row) {
        const auto end = static_cast<std::size_t>(stop[row]);
        if (!seen.insert(text.substr(begin, end - begin)).second)
            return row;
        begin = end;
    }
    return stop.size();
}

std::string write_rows(std::span<const Written> columns) {
    std::string out;
    const std::size_t count = columns.empty() ? 0 : columns.front().values.size();
    for (std::size_t row = 0; row < count; ++row) {
        for (const Written &column : columns) {
            if (&column != columns.data())
                out += ',';
            const std::int64_t value = column.values[row];
            const std::int64_t begin = row == 0 ? 0 : column.values[row - 1];
            if (column.text == nullptr)
                append(out, value);
            else
                append(out, std::string_view(column.text + begin, value - begin));
        }
        out += '\n';
    }
    return out;
}

} // namespace tightship::table
