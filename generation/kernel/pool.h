// Threads that stay: they sleep between two steps, and within one wait for each other by spinning.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace lean {

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// All threads of a step meet here; what was written before is seen by all after.
class Barrier {
  public:
    explicit Barrier(int threads) : threads_(threads) {}

    void wait() {
        if (threads_ == 1) return;
        const uint32_t round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            round_.notify_all();
            return;
        }
        for (int turn = 0; turn < SPINS; turn++) {
            if (round_.load(std::memory_order_acquire) != round) return;
            pause();
        }
        // Spinning is for cores of our own; on a crowded machine the others may need this one.
        while (round_.load(std::memory_order_acquire) == round)
            round_.wait(round, std::memory_order_acquire);
    }

  private:
    static constexpr int SPINS = 2000;  // some tens of microseconds
    const int threads_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<uint32_t> round_{0};
};

// Runs one function on all threads at once, the caller's being number 0.
class Pool {
  public:
    explicit Pool(int threads) : threads(threads), barrier(threads) {
        for (int rank = 1; rank < threads; rank++)
            workers_.emplace_back([this, rank] { work(rank); });
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    template <class Task>
    void run(Task& task) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            call_ = [](void* it, int rank) { (*static_cast<Task*>(it))(rank); };
            task_ = &task;
            turn_++;
        }
        wake_.notify_all();
        task(0);
        barrier.wait();  // nobody may still be in the task when it goes
    }

    const int threads;
    Barrier barrier;

  private:
    void work(int rank) {
        uint64_t seen = 0;
        for (;;) {
            void (*call)(void*, int);
            void* task;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return stopping_ || turn_ != seen; });
                if (stopping_) return;
                seen = turn_;
                call = call_;
                task = task_;
            }
            call(task, rank);
            barrier.wait();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
    void (*call_)(void*, int) = nullptr;
    void* task_ = nullptr;
    uint64_t turn_ = 0;
    bool stopping_ = false;
};

}  // namespace lean
