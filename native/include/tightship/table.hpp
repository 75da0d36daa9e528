/// Tables of text: CSV as in RFC 4180, columns of integers and of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tightship::table {

/// Concatenated words in UTF-8; word i is the bytes [stop[i - 1], stop[i]).
struct Words {
    std::string text;
    std::vector<std::int64_t> stop;
};

using Integers = std::vector<std::int64_t>;

/// Type of a column: integers in [0, 2**63), such integers or empty fields (read as -1), words, or
/// anything, which is not kept.
enum class Kind : int { integer = 0, optional_integer = 1, words = 2, ignored = 3 };

enum class Fault : int { none, field_count, not_integer, out_of_range, quote, too_long };

/// Reason and position of a fault; `text` is the field, or the number of fields.
struct Refusal {
    Fault fault = Fault::none;
    std::int64_t line = 0;
    std::size_t column = 0;
    std::string text;
};

struct Table {
    std::vector<std::variant<Integers, Words>> columns;
    Integers line; // of each row, from 1; the last one if a row spans several
    Refusal refusal;
};

/// Fields of the first line that is not empty; rows follow from byte `stop` on.
struct Header {
    std::vector<std::string> fields;
    std::size_t stop = 0;
    std::int64_t line = 0;
    Refusal refusal;
};

Header read_header(std::string_view content);

/// Reads the rows after a header. Lines end in LF, CRLF or CR; empty lines are skipped. Reading
/// ends at the first fault.
Table read_rows(std::string_view content, const Header &header, std::span<const Kind> kinds);

/// Returns the index of the first word that repeats an earlier one; their number if all differ.
std::size_t first_repeat(std::string_view text, std::span<const std::int64_t> stop);

/// Column to write: integers, or words (`text` not null).
struct Written {
    std::span<const std::int64_t> values; // the integers, or the stops of the words
    const char *text = nullptr;
};

/// Writes the rows as CSV, with lines ending in LF and words quoted if needed.
/// REQUIRES: columns of one length.
std::string write_rows(std::span<const Written> columns);

} // namespace tightship::table
