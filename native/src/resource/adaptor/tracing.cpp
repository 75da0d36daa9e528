#include "tightship/resource/adaptor/tracing.hpp"

#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstring>
#include <ctime>
#include <iterator>
#include <sys/syscall.h>
#include <unistd.h>

namespace tightship::resource {

namespace {

constexpr size_t kBufferBytes = 1 << 16;

/// Line of text with numbers, formatted without locale and format strings.
struct Line {
    char text[192];
    char *stop = text;

    size_t size() const { return static_cast<size_t>(stop - text); }
    Line &add(std::string_view part) {
        std::memcpy(stop, part.data(), part.size());
        stop += part.size();
        return *this;
    }
    template <std::integral Number> Line &add(Number number, int base = 10) {
        stop = std::to_chars(stop, std::end(text), number, base).ptr;
        return *this;
    }
    /// Adds a number with leading zeros.
    Line &add_digits(int64_t number, int count) {
        for (char *digit = stop + count; digit-- > stop; number /= 10)
            *digit = static_cast<char>('0' + number % 10);
        stop += count;
        return *this;
    }
};

long thread_number() {
    thread_local const long number = syscall(SYS_gettid);
    return number;
}

} // namespace

TracingResource::TracingResource(std::shared_ptr<MemoryResource> upstream, const std::string &path)
    : Adaptor(std::move(upstream)), path_(path), file_(std::fopen(path.c_str(), "we")) {
    if (file_ == nullptr)
        throw Misuse("`" + path + "` cannot be written: " + std::strerror(errno) + ".");
    std::setvbuf(file_, nullptr, _IOFBF, kBufferBytes);
    std::fputs("Thread,Time,Action,Pointer,Size,Stream\n", file_);
}

TracingResource::~TracingResource() {
    std::fclose(file_);
}

void *TracingResource::allocate(size_t size_bytes, size_t alignment) {
    void *pointer = upstream()->allocate(size_bytes, alignment);
    write(pointer == nullptr ? "allocate failure" : "allocate", pointer, size_bytes);
    return pointer;
}

Freed TracingResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    write("free", pointer, size_bytes);
    return upstream()->deallocate(pointer, size_bytes, alignment);
}

void TracingResource::write(std::string_view action, const void *pointer, size_t size_bytes) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const std::lock_guard lock(mutex_);
    if (now.tv_sec != second_) {
        tm parts;
        localtime_r(&now.tv_sec, &parts);
        std::strftime(clock_, sizeof clock_, "%H:%M:%S", &parts);
        second_ = now.tv_sec;
    }
    Line line;
    line.add(thread_number()).add(",").add(clock_).add(".");
    line.add_digits(now.tv_nsec / 1000, 6).add(",").add(action).add(",0x");
    line.add(reinterpret_cast<size_t>(pointer), 16).add(",").add(size_bytes).add(",0x0\n");
    std::fwrite(line.text, 1, line.size(), file_);
}

void TracingResource::flush() {
    const std::lock_guard lock(mutex_);
    if (std::fflush(file_) != 0 || std::ferror(file_) != 0)
        throw Misuse("`" + path_ + "` has lost lines: they could not be written.");
}

void TracingResource::before_fork() {
    mutex_.lock();
    std::fflush(file_);
}

} // namespace tightship::resource
