// busy does what a busy operator does: HTTP over the loopback with deadlines, JSON, queues with timers, for a fixed number of requests.
// With an argument it only waits, in every way that Go has, for as many seconds of its own, and fails if that took less or much longer.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type object struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Spec   []int             `json:"spec"`
}

func main() {
	if len(os.Args) > 1 {
		seconds, _ := strconv.Atoi(os.Args[1])
		wait(time.Duration(seconds) * time.Second)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	answer := object{Name: "x", Labels: map[string]string{"a": "b", "c": "d"}, Spec: make([]int, 200)}
	server := &http.Server{ReadTimeout: time.Minute, WriteTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(answer)
	})}
	go func() { _ = server.Serve(listener) }()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	queue := make(chan object, 64)
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 3000 {
				response, err := client.Get("http://" + listener.Addr().String())
				if err != nil {
					panic(err)
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				var got object
				if err := json.Unmarshal(body, &got); err != nil {
					panic(err)
				}
				select {
				case queue <- got:
				case <-time.After(time.Minute):
				}
			}
		}()
	}
	go func() { group.Wait(); close(queue) }()
	count := 0
	for range queue {
		count++
	}
	fmt.Println(count)
}

// wait takes four times as long as it is told: a sleep, a ticker, a deadline, and many timers at once.
func wait(length time.Duration) {
	began, wall := time.Now(), time.Now().Round(0)
	time.Sleep(length)
	ticker := time.NewTicker(length / 10)
	for range 10 {
		<-ticker.C
	}
	deadline, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	<-deadline.Done()
	var group sync.WaitGroup
	for index := range 200 {
		group.Add(1)
		time.AfterFunc(length*time.Duration(index+1)/200, group.Done)
	}
	group.Wait()
	took, walked := time.Since(began), time.Now().Round(0).Sub(wall)
	if took < 4*length || took > 5*length || walked < took-time.Second || walked > took+time.Second {
		fmt.Println("took", took, "by the wall clock", walked)
		os.Exit(1)
	}
}
