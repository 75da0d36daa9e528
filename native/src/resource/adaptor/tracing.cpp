#include "tightship/resource/adaptor/tracing.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace tightship::resource {

namespace {

constexpr size_t kBufferBytes = 1 << 16;

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
    std::fprintf(file_, "%ld,%s.%06ld,%.*s,0x%zx,%zu,0x0\n", thread_number(), clock_,
                 now.tv_nsec / 1000, static_cast<int>(action.size()), action.data(),
                 reinterpret_cast<size_t>(pointer), size_bytes);
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
